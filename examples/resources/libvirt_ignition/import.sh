# The identifier is the path of a configuration on this machine, or of the image of a drive with
# one. The name is that of the file, without its extension …
tofu import libvirt_ignition.core /srv/seeds/core-1.ign

# … or stands before it. Only libvirt has the file? Fetch it first:
virsh vol-download --pool default core-1.ign /tmp/config.ign
tofu import libvirt_ignition.core core-1=/tmp/config.ign
