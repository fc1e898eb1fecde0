import {
  to = libvirt_combustion.micro
  id = "micro-1=/srv/seeds/micro-1.sh"
}
