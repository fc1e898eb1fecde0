data "libvirt_domain_interface_addresses" "router" {
  domain = "router"
  source = "lease"
}

output "addresses" {
  value = flatten(data.libvirt_domain_interface_addresses.router.interfaces[*].addrs[*].addr)
}
