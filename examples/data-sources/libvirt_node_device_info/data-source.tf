data "libvirt_node_devices" "net" {
  capability = "net"
}

data "libvirt_node_device_info" "net" {
  for_each = data.libvirt_node_devices.net.devices
  name     = each.key
}

output "links" {
  value = { for d in data.libvirt_node_device_info.net : d.capability.interface => d.capability.link_state }
}
