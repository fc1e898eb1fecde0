data "libvirt_capabilities" "host" {}

locals {
  # kvm where the host has it.
  virt_types  = flatten([for g in data.libvirt_capabilities.host.guests : g.virt_types if g.arch == data.libvirt_capabilities.host.arch])
  domain_type = contains(local.virt_types, "kvm") ? "kvm" : "qemu"
}

output "domain_type" {
  value = local.domain_type
}
