resource "libvirt_domain" "web" {
  name        = "web-1"
  title       = "Web server"
  type        = "kvm" # "qemu" where there is no KVM
  memory      = 2
  memory_unit = "GiB"
  vcpu        = 2
  autostart   = true # set by itself, never touches the guest
  running     = true # starts it; left out, the power is left alone

  os = {
    type         = "hvm"
    type_arch    = "x86_64"
    type_machine = "q35"
  }

  cpu      = { mode = "host-passthrough" }
  features = { acpi = true, apic = {} }

  devices = {
    disks = [
      {
        driver = { name = "qemu", type = "qcow2", discard = "unmap" }
        source = { volume = { pool = "default", volume = "web.qcow2" } }
        target = { dev = "vda", bus = "virtio" } # dev is the disk's identity
      },
      {
        device = "cdrom"
        driver = { name = "qemu", type = "raw" }
        source = { volume = { pool = "default", volume = "web-1-seed.iso" } }
        target = { dev = "sda", bus = "sata" }
      },
    ]

    interfaces = [{
      source      = { network = { network = "default" } }
      model       = { type = "virtio" }
      wait_for_ip = { source = "lease", timeout = 120 } # at creation; a timeout is a warning
    }]

    # For virsh console.
    serials = [{ source = { pty = {} }, target = { port = 0 } }]

    # For the guest agent.
    channels = [{
      source = { unix = {} }
      target = { virt_io = { name = "org.qemu.guest_agent.0" } }
    }]

    graphics = [{ vnc = { auto_port = true, listen = "127.0.0.1" } }]
    videos   = [{ model = { type = "virtio" } }]
    rngs     = [{ model = "virtio", backend = { random = "/dev/urandom" } }]
  }
}

# Chosen by libvirt, and kept from then on.
output "mac_address" {
  value = libvirt_domain.web.devices.interfaces[0].mac.address
}

# A plan that leaves something waiting fails this check, with a warning.
check "web_is_settled" {
  assert {
    condition     = libvirt_domain.web.status.settled
    error_message = "web-1 is ${libvirt_domain.web.status.state}: ${join(", ", libvirt_domain.web.status.pending)}"
  }
}
