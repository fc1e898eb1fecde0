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

# The machine finds the script by fw_cfg.
resource "libvirt_domain" "micro" {
  name   = "micro-1"
  type   = "kvm"
  memory = 2097152
  vcpu   = 2
  os     = { type = "hvm", type_machine = "q35" }
  sys_info = [{
    fw_cfg = {
      entry = [{ name = "opt/org.opensuse.combustion/script", file = libvirt_volume.micro_combustion.path }]
    }
  }]
  devices = {
    disks = [{
      source = { volume = { pool = "default", volume = "micro-1.qcow2" } }
      driver = { name = "qemu", type = "qcow2" }
      target = { dev = "vda", bus = "virtio" }
    }]
  }
}

# Or on a drive, where fw_cfg is not to be had: its label is "combustion".
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

resource "libvirt_domain" "micro_2" {
  name   = "micro-2"
  type   = "kvm"
  memory = 2097152
  vcpu   = 2
  os     = { type = "hvm", type_machine = "q35" }
  devices = {
    disks = [{
      source = { volume = { pool = "default", volume = "micro-2.qcow2" } }
      driver = { name = "qemu", type = "qcow2" }
      target = { dev = "vda", bus = "virtio" }
      }, {
      device = "cdrom"
      source = { volume = { pool = "default", volume = libvirt_volume.drive.name } }
      target = { dev = "sda", bus = "sata" }
    }]
  }
}
