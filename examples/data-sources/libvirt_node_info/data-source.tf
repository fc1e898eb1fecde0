data "libvirt_node_info" "host" {}

output "memory_gib" {
  value = floor(data.libvirt_node_info.host.memory_total_kb / 1024 / 1024)
}
