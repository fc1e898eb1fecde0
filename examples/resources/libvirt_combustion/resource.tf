resource "libvirt_combustion" "micro" {
  name    = "micro-1"
  content = <<-EOT
    #!/bin/bash
    # combustion: network
    echo 'root:$6$rounds=4096$salt$hash' | chpasswd -e
    systemctl enable sshd.service
  EOT
}

# The volume has no capacity of its own: its file is as long as the script.
resource "libvirt_volume" "micro_combustion" {
  name = "micro-1.sh"
  pool = "default"
  create = {
    content = { url = libvirt_combustion.micro.path }
  }
}

resource "libvirt_volume" "micro" {
  name   = "micro-1.qcow2"
  pool   = "default"
  target = { format = { type = "qcow2" } }
  create = {
    content = { url = "https://download.opensuse.org/tumbleweed/appliances/openSUSE-MicroOS.x86_64-kvm-and-xen.qcow2" }
  }
}

# The machine finds the script by fw_cfg.
resource "libvirt_domain" "micro" {
  name        = "micro-1"
  type        = "kvm"
  memory      = 2
  memory_unit = "GiB"
  vcpu        = 2
  os          = { type = "hvm", type_arch = "x86_64", type_machine = "q35" }
  features    = { acpi = true } # without ACPI the guest does not find fw_cfg
  sys_info = [{
    fw_cfg = {
      entry = [{ name = "opt/org.opensuse.combustion/script", file = libvirt_volume.micro_combustion.path }]
    }
  }]
  devices = {
    disks = [{
      driver = { name = "qemu", type = "qcow2" }
      source = { volume = { pool = "default", volume = libvirt_volume.micro.name } }
      target = { dev = "vda", bus = "virtio" }
    }]
  }
}

# Or on a drive with the label "combustion": its volume goes into a CD drive, as that
# of a libvirt_cloudinit_disk does.
resource "libvirt_combustion" "drive" {
  name    = "micro-2"
  format  = "iso"
  content = libvirt_combustion.micro.content
}

resource "libvirt_volume" "drive" {
  name = "micro-2.iso"
  pool = "default"
  create = {
    content = { url = libvirt_combustion.drive.path }
  }
}
