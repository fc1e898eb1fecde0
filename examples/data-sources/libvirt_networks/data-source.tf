data "libvirt_networks" "all" {}

output "not_started" {
  value = [for n in data.libvirt_networks.all.networks : n.name if !n.active]
}
