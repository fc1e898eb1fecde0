# A network of its own with address translation, DHCP and DNS. Its lists of
# hosts, ranges and names change live; anything else waits until the network is
# started again.
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
      hosts  = [{ mac = "52:54:00:60:00:0a", name = "router", ip = "192.168.60.10" }]
    }
  }]

  dns = {
    host = [{ ip = "192.168.60.1", hostnames = [{ hostname = "gateway" }] }]
  }
}

# A bridge of the host, made known to libvirt.
resource "libvirt_network" "uplink" {
  name      = "uplink"
  autostart = true

  forward = { mode = "bridge" }
  bridge  = { name = "br0" }
}
