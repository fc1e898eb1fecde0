# The identifier is the pool and the name, as `virsh vol-list default` shows it …
tofu import libvirt_volume.data default/web-data.raw

# … or the key or the path (virsh vol-key web-data.raw default).
tofu import libvirt_volume.data /var/lib/libvirt/images/web-data.raw
