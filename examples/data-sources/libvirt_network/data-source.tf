data "libvirt_network" "default" {
  name = "default"
}

output "bridge" {
  value = data.libvirt_network.default.bridge.name
}
