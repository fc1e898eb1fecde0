#!/bin/sh
# Pid 1 of a throwaway host. Arguments: its directory, and its control groups as
# the machine names them.
#
# Nothing here changes the machine: every mount is in a namespace of its own,
# every file below the directory. When this process ends, the kernel kills all
# others of its pid namespace and drops the mounts and the network with them.
set -eu
dir=$1
groups=$2

# /proc is still the machine's, so this is our pid as seen from outside, and the
# start time that tells it from a later one with the same number.
read -r pid rest < /proc/self/stat
set -- ${rest#*) }
shift 19
echo "$pid $1" > "$dir/pid.new"
mv "$dir/pid.new" "$dir/pid"

mount -t proc proc /proc
# A sysfs of this network namespace: the machine's own shows its own network.
# What was mounted below it must leave the list of mounts, where libvirtd looks
# for control groups.
umount -R -l /sys/fs/cgroup 2> /dev/null || :
mount -t sysfs sysfs /sys
case $groups in
'') ;;
/sys/fs/cgroup/testhost-*)
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	mkdir /sys/fs/cgroup/daemon
	echo 0 > /sys/fs/cgroup/daemon/cgroup.procs
	# Only now is the root free of processes, and may give controllers away.
	for c in cpu cpuset io memory; do echo "+$c" > /sys/fs/cgroup/cgroup.subtree_control || :; done
	;;
*)
	mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
	for g in $groups; do
		c=${g#/sys/fs/cgroup/}
		c=${c%%/*}
		mkdir "/sys/fs/cgroup/$c"
		mount -t cgroup -o "$c" cgroup "/sys/fs/cgroup/$c"
	done
	;;
esac
ip link set lo up

# /run hides the machine's D-Bus, and with it its firewalld, machined and polkit,
# which would otherwise be asked to look after our machines.
mkdir -p "$dir/run/libvirt" "$dir/run/lock"
if [ -d /run/user ]; then
	mkdir -p "$dir/run/user"
	mount --rbind /run/user "$dir/run/user"
fi
mount --rbind "$dir/run" /run

# shadow DIR puts a copy made of binds over DIR, so that a mount point can be
# made in it without touching the machine. With names, only those are copied.
shadow() {
	parent=$1
	shift
	[ $# -gt 0 ] || set -- $(ls -A "$parent")
	mkdir -p "$dir/shadow"
	mount -t tmpfs -o mode=755 tmpfs "$dir/shadow"
	for n; do
		if [ -L "$parent/$n" ]; then
			cp -P "$parent/$n" "$dir/shadow/$n"
		elif [ -d "$parent/$n" ]; then
			mkdir "$dir/shadow/$n"
			mount --rbind "$parent/$n" "$dir/shadow/$n"
		elif [ -e "$parent/$n" ]; then
			: > "$dir/shadow/$n"
			mount --bind "$parent/$n" "$dir/shadow/$n"
		fi
	done
	mount --move "$dir/shadow" "$parent"
}

# private NAME PLACE makes PLACE ours.
private() {
	mkdir -p "$dir/$1"
	if [ ! -d "$2" ]; then
		shadow "${2%/*}"
		mkdir "$2"
	fi
	mount --bind "$dir/$1" "$2"
}
private etc /etc/libvirt
private varlib /var/lib/libvirt
private varcache /var/cache/libvirt
private log /var/log/libvirt
private swtpm-localca /var/lib/swtpm-localca

# Debian's libvirtd insists on a user that a package we do without would make. It
# is only looked up; everything runs as root.
for db in passwd:libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin group:libvirt-qemu:x:64055:; do
	file=/etc/${db%%:*}
	if ! grep -q '^libvirt-qemu:' "$file"; then
		{ cat "$file"; echo "${db#*:}"; } > "$dir/${db%%:*}"
		mount --bind "$dir/${db%%:*}" "$file"
	fi
done

# No /dev/kvm: guests are emulated everywhere, so that they behave the same
# everywhere; and a device that is there but does not work makes libvirtd probe
# QEMU anew at every look-up. Terminals are the host's own: a ptmx that is bound
# by itself finds none.
shadow /dev null zero full random urandom tty fuse vhost-net vhost-vsock \
	shm net mapper hugepages fd stdin stdout stderr
mkdir /dev/pts
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts /dev/pts
ln -s pts/ptmx /dev/ptmx
if [ ! -d /dev/net ]; then
	# The driver makes it when it is loaded, and is loaded when it is opened.
	mkdir /dev/net
	mknod /dev/net/tun c 10 200
fi

# The daemon is started again whenever it ends. Waiting also reaps what guests
# and daemons leave behind, without which every QEMU that libvirtd probes would
# seem to live for ever.
while :; do
	libvirtd --config "$dir/libvirtd.conf" --pid-file "$dir/libvirtd.pid" >> "$dir/libvirtd.log" 2>&1 &
	code=0
	wait $! || code=$?
	echo "libvirtd ended with status $code" >> "$dir/libvirtd.log"
	sleep 0.1
done
