# The figures are of the pool's last refresh: a data source refreshes none.
data "libvirt_pool" "default" {
  name = "default"
}

check "room" {
  assert {
    condition     = data.libvirt_pool.default.available > 10 * 1024 * 1024 * 1024
    error_message = "Less than 10 GiB left in the pool."
  }
}
