resource "libvirt_cloudinit_disk" "web" {
  name = "web-1"

  # The first line tells cloud-init what the rest is.
  user_data = join("\n", ["#cloud-config", yamlencode({
    users = ["default", {
      name                = "admin"
      sudo                = "ALL=(ALL) NOPASSWD:ALL"
      ssh_authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGs0 admin@example.com"]
    }]
    packages = ["nginx"]
  })])

  # A new instance-id makes cloud-init set the machine up again.
  meta_data = yamlencode({
    instance-id    = "web-1"
    local-hostname = "web-1"
  })

  network_config = yamlencode({
    version   = 2
    ethernets = { uplink = { match = { name = "en*" }, dhcp4 = true } }
  })
}

# The image goes into a pool of the libvirt host, and from there into the drive
# of a machine. Or, with pool = "default" in the seed, it lies there by itself: then
# the drive names libvirt_cloudinit_disk.web.volume_name.
resource "libvirt_volume" "web_seed" {
  name = "web-1-seed.iso"
  pool = "default"

  create = {
    content = { url = libvirt_cloudinit_disk.web.path }
  }
}
