# A machine that this configuration does not manage.
data "libvirt_domain" "router" {
  name = "router"
}

# What runs now, with what its start has added, as the port of its display.
data "libvirt_domain" "router_now" {
  name = "router"
  view = "guest"
}

output "router" {
  value = {
    running = data.libvirt_domain.router.running
    macs    = data.libvirt_domain.router.devices.interfaces[*].mac.address
    waits   = data.libvirt_domain.router.status.pending
  }
}
