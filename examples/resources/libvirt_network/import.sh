# The identifier is the name of the network, as `virsh net-list --all` shows it …
tofu import libvirt_network.lan lan

# … or its UUID (virsh net-uuid lan).
tofu import libvirt_network.lan 0b1c7f5e-52a5-4c4c-8f7e-2f5b7a0c3d21
