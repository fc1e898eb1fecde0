import {
  to = libvirt_volume.data
  id = "default/web-data.raw"
}
