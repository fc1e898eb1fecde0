import {
  to = libvirt_pool.machines
  id = "machines"
}
