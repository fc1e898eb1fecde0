# The identifier is the path of an image on this machine, whatever program wrote it. The name
# is that of the file, without its extension …
tofu import libvirt_cloudinit_disk.web /srv/seeds/web-1.iso

# … or stands before it. Only libvirt has the image? Fetch it first:
virsh vol-download --pool default web-1-seed.iso /tmp/seed.iso
tofu import libvirt_cloudinit_disk.web web-1=/tmp/seed.iso
