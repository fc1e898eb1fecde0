terraform {
  required_providers {
    libvirt = { source = "driftsafe/libvirt" }
  }
}

provider "libvirt" {
  uri = "qemu+ssh://root@host.example/system"
}
