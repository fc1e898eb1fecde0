data "libvirt_volumes" "images" {
  pool       = "default"
  name_regex = "[.]qcow2$"
}

output "images" {
  value = data.libvirt_volumes.images.names
}
