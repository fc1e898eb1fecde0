resource "libvirt_ignition" "core" {
  name = "core-1"
  content = jsonencode({
    ignition = { version = "3.4.0" }
    passwd = {
      users = [{
        name              = "core"
        sshAuthorizedKeys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGs0 admin@example.com"]
      }]
    }
  })
}

# The volume has no capacity of its own: its file is as long as the configuration.
resource "libvirt_volume" "core_ignition" {
  name = "core-1.ign"
  pool = "default"
  create = {
    content = { url = libvirt_ignition.core.path }
  }
}

# The image of Fedora CoreOS, unpacked.
resource "libvirt_volume" "core" {
  name   = "core-1.qcow2"
  pool   = "default"
  target = { format = { type = "qcow2" } }
  create = {
    content = { url = "/srv/images/fedora-coreos-qemu.x86_64.qcow2" }
  }
}

# The machine finds the configuration by fw_cfg.
resource "libvirt_domain" "core" {
  name        = "core-1"
  type        = "kvm"
  memory      = 2
  memory_unit = "GiB"
  vcpu        = 2
  os          = { type = "hvm", type_arch = "x86_64", type_machine = "q35" }
  features    = { acpi = true } # without ACPI the guest does not find fw_cfg
  sys_info = [{
    fw_cfg = {
      entry = [{ name = "opt/com.coreos/config", file = libvirt_volume.core_ignition.path }]
    }
  }]
  devices = {
    disks = [{
      driver = { name = "qemu", type = "qcow2" }
      source = { volume = { pool = "default", volume = libvirt_volume.core.name } }
      target = { dev = "vda", bus = "virtio" }
    }]
  }
}
