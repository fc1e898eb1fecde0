import {
  to = libvirt_cloudinit_disk.web
  id = "web-1=/srv/seeds/web-1.iso"
}
