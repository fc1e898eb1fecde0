# A directory of the host. It is made if it is missing, and never deleted:
# destroying the pool leaves the directory and its files.
resource "libvirt_pool" "machines" {
  name      = "machines"
  type      = "dir"
  autostart = true

  target = { path = "/srv/machines" }
}

# A volume group that is there already: nothing is built.
resource "libvirt_pool" "vg" {
  name      = "vg0"
  type      = "logical"
  autostart = true

  source = { name = "vg0" }
  target = { path = "/dev/vg0" }
}
