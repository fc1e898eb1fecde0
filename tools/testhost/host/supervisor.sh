#!/bin/sh
# Pid 1 of a throwaway host: arguments are its directory and "owned" if it must
# not outlive the process that holds the other end of file descriptor 3.
#
# Nothing here changes the machine: every mount is in a namespace of its own,
# every file below the directory. When this process ends, the kernel kills all
# others of its pid namespace and drops the mounts and the network with them.
set -eu
dir=$1
owned=$2
uri="qemu+unix:///system?socket=$dir/sock/libvirt-sock"

mount --make-rprivate /
mount -t proc proc /proc
# A sysfs of this network namespace: the machine's own shows its own network.
mount -t sysfs sysfs /sys
ip link set lo up

# /run hides the machine's D-Bus, and with it its firewalld, machined and polkit,
# which would otherwise be asked to look after our machines.
mkdir -p "$dir/run/libvirt" "$dir/run/lock"
if [ -d /run/user ]; then
	mkdir -p "$dir/run/user"
	mount --rbind /run/user "$dir/run/user"
fi
mount --rbind "$dir/run" /run

# shadow DIR: replace DIR by a copy made of binds, so that a mount point can be
# made in it without touching the machine.
shadow() {
	mkdir -p "$dir/shadow"
	mount -t tmpfs tmpfs "$dir/shadow"
	for e in "$1"/* "$1"/.[!.]*; do
		n="$dir/shadow/${e##*/}"
		if [ -L "$e" ]; then
			cp -P "$e" "$n"
		elif [ -d "$e" ]; then
			mkdir "$n"
			mount --rbind "$e" "$n"
		elif [ -e "$e" ]; then
			: > "$n"
			mount --bind "$e" "$n"
		fi
	done
	mount --move "$dir/shadow" "$1"
}

# private DIR TO: TO is ours.
private() {
	mkdir -p "$1"
	if [ ! -d "$2" ]; then
		shadow "${2%/*}"
		mkdir "$2"
	fi
	mount --bind "$1" "$2"
}
private "$dir/etc" /etc/libvirt
private "$dir/varlib" /var/lib/libvirt
private "$dir/varcache" /var/cache/libvirt
private "$dir/log" /var/log/libvirt
private "$dir/swtpm-localca" /var/lib/swtpm-localca

# No /dev/kvm: guests are emulated everywhere, so that they behave the same
# everywhere; and a device that is there but does not work makes libvirtd probe
# QEMU anew at every look-up. The rest of /dev stays.
shadow_dev() {
	mkdir -p "$dir/shadow"
	mount -t tmpfs -o mode=755 tmpfs "$dir/shadow"
	for n in null zero full random urandom tty fuse vhost-net vhost-vsock vfio loop-control; do
		[ -e "/dev/$n" ] || continue
		if [ -d "/dev/$n" ]; then
			mkdir "$dir/shadow/$n"
			mount --rbind "/dev/$n" "$dir/shadow/$n"
		else
			: > "$dir/shadow/$n"
			mount --bind "/dev/$n" "$dir/shadow/$n"
		fi
	done
	for n in pts shm net mapper; do
		[ -d "/dev/$n" ] || continue
		mkdir "$dir/shadow/$n"
		mount --rbind "/dev/$n" "$dir/shadow/$n"
	done
	ln -s pts/ptmx "$dir/shadow/ptmx"
	ln -s /proc/self/fd "$dir/shadow/fd"
	ln -s /proc/self/fd/0 "$dir/shadow/stdin"
	ln -s /proc/self/fd/1 "$dir/shadow/stdout"
	ln -s /proc/self/fd/2 "$dir/shadow/stderr"
	mount --move "$dir/shadow" /dev
}
if [ -e /dev/kvm ]; then shadow_dev; fi
rmdir "$dir/shadow" 2> /dev/null || :

# The end: kill everything but ourselves, and take the directory away.
finish() {
	trap '' TERM
	kill -KILL -1 2> /dev/null || :
	cd /
	for i in 1 2 3; do rm -rf "$dir" 2> /dev/null && break; sleep 0.1; done
	exit 0
}
trap finish TERM
if [ "$owned" = owned ]; then
	{ cat <&3 > /dev/null; kill -TERM 1; } &
	exec 3<&-
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
