# The identifier is the path of a script on this machine, or of the image of a drive with one.
# The name is that of the file, without its extension …
tofu import libvirt_combustion.micro /srv/seeds/micro-1.sh

# … or stands before it. Only libvirt has the file? Fetch it first:
virsh vol-download --pool default micro-1.sh /tmp/script
tofu import libvirt_combustion.micro micro-1=/tmp/script
