data "libvirt_domain_capabilities" "q35" {
  machine   = "q35"
  virt_type = "qemu"

  lifecycle {
    postcondition {
      condition     = contains(self.firmware, "efi")
      error_message = "The host has no UEFI firmware: install ovmf."
    }
    postcondition {
      condition     = contains(try(self.devices["disk"]["bus"], []), "virtio")
      error_message = "The host's QEMU has no virtio disks."
    }
  }
}

output "cpu_models" {
  value = data.libvirt_domain_capabilities.q35.cpu_models
}
