package spec

// meanings are the descriptions of fields, by the document they belong to. A
// table is searched for the whole pattern of a field first; a key "*.x.y"
// serves every field whose pattern ends in x.y and that has no longer key of
// its own. What is said of a shape that occurs often (a source, an address)
// stands under such a key, so that the documentation can print the shape once.
var meanings = map[string][]map[string]string{
	"domain":  {domainMeanings, cpuMeanings, deviceMeanings, blockMeanings, nicMeanings, charMeanings, sharedMeanings},
	"network": {networkMeanings, sharedMeanings},
	"pool":    {poolMeanings, storageMeanings, sharedMeanings},
	"volume":  {volumeMeanings, storageMeanings, sharedMeanings},
}

// sharedMeanings are those of fields that several kinds of document have.
var sharedMeanings = map[string]string{
	"name":         "Name, unique on the host.",
	"uuid":         "Identity of the object, chosen by libvirt unless set. It never changes.",
	"metadata":     "Elements of other namespaces, kept by libvirt as they are.",
	"metadata.xml": "The elements, as XML, each in a namespace of its own.",

	"*.bandwidth.inbound":           "Limits of traffic to the guest.",
	"*.bandwidth.outbound":          "Limits of traffic from the guest.",
	"*.average":                     "Average rate, in kilobytes per second.",
	"*.peak":                        "Greatest rate of a burst, in kilobytes per second.",
	"*.burst":                       "Amount that may pass at the peak rate, in kilobytes.",
	"*.floor":                       "Rate that is guaranteed, in kilobytes per second; needs a network that has a limit of its own.",
	"*.vlan.trunk":                  "`yes` lets several VLANs through.",
	"*.vlan.tags":                   "The VLANs.",
	"*.tags[].id":                   "Number of the VLAN.",
	"*.native_mode":                 "How untagged traffic of a trunk is treated: `tagged` or `untagged`.",
	"vlan.trunk":                    "`yes` lets several VLANs through.",
	"vlan.tags":                     "The VLANs.",
	"bandwidth":                     "Limits of traffic.",
	"port_options.isolated":         "`yes` keeps guests of the network from talking to each other.",
	"*.port_options.isolated":       "`yes` keeps the interface from talking to other isolated ones of its bridge.",
	"*.trust_guest_rx_filters":      "`yes` lets the guest change MAC address and receive filters of its interface.",
	"trust_guest_rx_filters":        "`yes` lets guests change MAC address and receive filters of their interfaces.",
	"*.params.open_v_switch":        "A port of Open vSwitch.",
	"*.open_v_switch.interface_id":  "UUID of the interface in Open vSwitch, made up unless set.",
	"*.open_v_switch.profile_id":    "Profile of the port in Open vSwitch.",
	"*.permissions.mode":            "Access rights, in octal: `0755`.",
	"*.permissions.owner":           "User, as a number.",
	"*.permissions.group":           "Group, as a number.",
	"*.permissions.label":           "Label of SELinux.",
	"*.encryption.format":           "Kind of encryption: `luks`.",
	"*.encryption.secret.type":      "`passphrase`.",
	"*.encryption.secret.uuid":      "UUID of the secret in libvirt.",
	"*.auth.username":               "User at the server.",
	"*.auth.secret.uuid":            "UUID of the secret in libvirt; or name it by `usage`.",
	"*.auth.secret.usage":           "Usage of the secret in libvirt; or name it by `uuid`.",
	"*.address.pci.multi_function":  "`on` says that other functions of the slot are used too.",
	"*.address.pci.domain":          "PCI domain, as a decimal number.",
	"*.address.pci.bus":             "PCI bus, as a decimal number: the index of the controller.",
	"*.address.pci.slot":            "PCI slot, 0 to 31.",
	"*.address.pci.function":        "PCI function, 0 to 7.",
	"*.virtual_port":                "What a virtual switch must know of the port.",
	"virtual_port":                  "What a virtual switch must know of the ports.",
	"*.params.any":                  "The kind of port is the network's choice.",
	"*.params.mido_net":             "A port of MidoNet.",
	"*.params.vepa8021qbg":          "A port by 802.1Qbg (VEPA).",
	"*.params.vn_tag8011qbh":        "A port by 802.1Qbh.",
	"*.vn_tag8011qbh.profile_id":    "Profile of the port in the switch.",
	"*.mido_net.interface_id":       "UUID of the port in MidoNet.",
	"*.vepa8021qbg.manager_id":      "VSI manager, 0 to 255.",
	"*.vepa8021qbg.type_id":         "VSI type.",
	"*.vepa8021qbg.type_id_version": "Version of the VSI type.",
	"*.vepa8021qbg.instance_id":     "VSI instance, a UUID.",
}
