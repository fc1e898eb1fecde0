import {
  to = libvirt_network.lan
  id = "lan"
}
