# Two machines on a network of their own, each with a disk over a common base
# image and a cloud-init seed.

terraform {
  required_providers {
    libvirt = {
      source = "driftsafe/libvirt"
    }
  }
}

provider "libvirt" {
  uri = var.uri
}

resource "libvirt_pool" "machines" {
  name      = "machines"
  type      = "dir"
  autostart = true

  target = {
    path = var.pool_path
  }
}

resource "libvirt_network" "lan" {
  name      = "lan"
  autostart = true

  forward = { mode = "nat" }
  domain  = { name = "lan.example", local_only = "yes" }

  ips = [{
    address = "192.168.60.1"
    prefix  = 24
    dhcp = {
      ranges = [{ start = "192.168.60.100", end = "192.168.60.199" }]
    }
  }]
}

resource "libvirt_volume" "base" {
  name = "base.qcow2"
  pool = libvirt_pool.machines.name

  target = { format = { type = "qcow2" } }

  create = {
    content = { url = var.image }
  }
}

resource "libvirt_volume" "disk" {
  for_each = var.machines

  name          = "${each.key}.qcow2"
  pool          = libvirt_pool.machines.name
  capacity      = each.value.disk
  capacity_unit = "MiB"
  protect       = each.value.protect

  target = { format = { type = "qcow2" } }

  backing_store = {
    path   = libvirt_volume.base.path
    format = { type = "qcow2" }
  }
}

resource "libvirt_cloudinit_disk" "seed" {
  for_each = var.machines

  name = "${each.key}-seed"

  meta_data = yamlencode({
    "instance-id"    = each.key
    "local-hostname" = each.key
  })

  user_data = <<-EOT
    #cloud-config
    hostname: ${each.key}
    EOT
}

resource "libvirt_volume" "seed" {
  for_each = var.machines

  name    = "${each.key}-seed.iso"
  pool    = libvirt_pool.machines.name
  protect = each.value.protect

  create = {
    content = { url = libvirt_cloudinit_disk.seed[each.key].path }
  }
}

resource "libvirt_domain" "machine" {
  for_each = var.machines

  name        = each.key
  title       = each.value.title
  type        = var.domain_type
  autostart   = true
  running     = true
  protect     = each.value.protect

  memory              = each.value.memory
  memory_unit         = "MiB"
  current_memory      = each.value.balloon
  current_memory_unit = "MiB"
  vcpu                = each.value.most_cpus
  vcpu_current        = each.value.cpus

  os = {
    type         = "hvm"
    type_arch    = "x86_64"
    type_machine = each.value.machine_type
  }

  features = { acpi = true }

  devices = {
    disks = [
      {
        driver = { name = "qemu", type = "qcow2" }
        source = { volume = { pool = libvirt_pool.machines.name, volume = libvirt_volume.disk[each.key].name } }
        target = { dev = "vda", bus = "virtio" }
      },
      {
        device = "cdrom"
        driver = { name = "qemu", type = "raw" }
        source = { volume = { pool = libvirt_pool.machines.name, volume = libvirt_volume.seed[each.key].name } }
        target = { dev = "sda", bus = "sata" }
      },
    ]

    interfaces = [{
      model       = { type = "virtio" }
      source      = { network = { network = libvirt_network.lan.name } }
      wait_for_ip = { source = "lease", timeout = 120 }
    }]

    serials = [{ source = { pty = {} }, target = { port = 0 } }]
  }
}

output "mac_addresses" {
  value = { for name, m in libvirt_domain.machine : name => m.devices.interfaces[0].mac.address }
}
