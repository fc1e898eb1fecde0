data "libvirt_pools" "all" {}

output "types" {
  value = { for p in data.libvirt_pools.all.pools : p.name => p.type }
}
