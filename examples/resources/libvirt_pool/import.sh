# The identifier is the name of the pool, as `virsh pool-list --all` shows it …
tofu import libvirt_pool.machines machines

# … or its UUID (virsh pool-uuid machines).
tofu import libvirt_pool.machines 3d5a0a4e-7b0c-4d2c-9d8a-1f4f8f0b6c11
