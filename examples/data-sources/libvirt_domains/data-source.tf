# Names, UUIDs and power: a few calls, however many machines there are.
data "libvirt_domains" "all" {}

# Whole, with what only the definition has.
data "libvirt_domains" "web" {
  name_regex = "^web-"
  full       = true
}

output "off_but_started_with_the_host" {
  value = [for d in data.libvirt_domains.all.domains : d.name if d.autostart && !d.running]
}

output "machine_types" {
  value = { for d in data.libvirt_domains.web.domains : d.name => d.os.type_machine }
}
