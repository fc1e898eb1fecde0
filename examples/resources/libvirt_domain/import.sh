# The identifier is the name of the domain, as `virsh list --all` shows it …
tofu import libvirt_domain.web web-1

# … or its UUID (virsh domuuid web-1).
tofu import libvirt_domain.web 5d4c1d5e-1b1c-4b57-9e0f-0f3a4b5c6d7e
