# An image, fetched once by the machine that runs the plan. What a volume was
# made from acts at creation only: another URL changes nothing afterwards.
resource "libvirt_volume" "debian" {
  name = "debian-12.qcow2"
  pool = "default"

  target = { format = { type = "qcow2" } }

  create = {
    content = { url = "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-genericcloud-amd64.qcow2" }
  }
}

# A disk over it. The capacity grows in place, also while a guest runs; a
# smaller one is refused.
resource "libvirt_volume" "web" {
  name          = "web.qcow2"
  pool          = "default"
  capacity      = 20
  capacity_unit = "GiB"

  target = { format = { type = "qcow2" } }

  backing_store = {
    path   = libvirt_volume.debian.path
    format = { type = "qcow2" }
  }
}

# A whole copy that the host makes of a volume that is there already.
resource "libvirt_volume" "build" {
  name = "build.qcow2"
  pool = "default"

  create = { clone = { pool = "images", volume = "builder.qcow2" } }
}

# An empty disk for data.
resource "libvirt_volume" "data" {
  name          = "web-data.raw"
  pool          = "default"
  capacity      = 100
  capacity_unit = "GiB"
}
