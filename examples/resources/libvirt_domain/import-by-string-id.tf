import {
  to = libvirt_domain.web
  id = "web-1"
}
