# An image that somebody else keeps, to lay other volumes over.
data "libvirt_volume" "base" {
  pool = "default"
  name = "base.qcow2"
}

output "base" {
  value = {
    path   = data.libvirt_volume.base.path
    format = data.libvirt_volume.base.target.format.type
    users  = data.libvirt_volume.base.status.users
  }
}
