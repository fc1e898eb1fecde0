import {
  to = libvirt_ignition.core
  id = "core-1=/srv/seeds/core-1.ign"
}
