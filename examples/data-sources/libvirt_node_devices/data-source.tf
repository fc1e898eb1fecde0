data "libvirt_node_devices" "pci" {
  capability = "pci"
}

output "pci" {
  value = data.libvirt_node_devices.pci.devices
}
