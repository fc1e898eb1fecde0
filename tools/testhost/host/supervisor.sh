#!/bin/sh
# The process outside: starts pid 1 of a throwaway host in namespaces, and
# cleans up after it, whatever ended it. Arguments: the host's directory, and
# "owned" if the host must not outlive the process that holds the other end of
# file descriptor 3.
set -u
# Asked to end before there is anything to end: remembered until there is, since
# what is half made must be taken away all the same.
early=
trap 'early=1' TERM
dir=$1
owned=$2
read -r pid rest < /proc/self/stat
set -- ${rest#*) }
shift 19
echo "$pid $1" > "$dir/supervisor.pid"

# Control groups of the host's own, so that CPU shares and memory limits of its
# guests are real. Where the machine doesn't let us make any, libvirtd is told
# to do without. The names are written down before anything is made.
groups=
own_groups() {
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		# Version 2: right below the root, since a group that has processes cannot
		# give controllers to its children.
		groups=/sys/fs/cgroup/testhost-$pid
		echo "$groups" > "$dir/cgroups"
		for c in cpu cpuset io memory; do echo "+$c" > /sys/fs/cgroup/cgroup.subtree_control; done
		mkdir "$groups" || return 1
		grep -qw cpu "$groups/cgroup.controllers" || return 1
	else
		own_groups_v1 || return 1
	fi
	for g in $groups; do
		# Some may be made but not entered.
		/bin/sh -c 'echo 0 > "$1/cgroup.procs"' sh "$g" || return 1
	done
	[ "$groups" ]
}
own_groups_v1() {
	while IFS=: read -r id controllers path; do
		case $controllers in *cpu* | memory | blkio) ;; *) continue ;; esac
		[ -e "/sys/fs/cgroup/$controllers/cgroup.procs" ] || continue
		parent=/sys/fs/cgroup/$controllers${path%/}
		groups="$groups $parent/testhost-$pid"
		echo "$parent/testhost-$pid" >> "$dir/cgroups"
		mkdir "$parent/testhost-$pid" || return 1
		case $controllers in *cpuset*)
			# A new group of this kind takes no process until it has both.
			cat "$parent/cpuset.cpus" > "$parent/testhost-$pid/cpuset.cpus" || return 1
			cat "$parent/cpuset.mems" > "$parent/testhost-$pid/cpuset.mems" || return 1
			;;
		esac
	done < /proc/self/cgroup
}
drop_groups() {
	left=0
	for g in $groups; do
		[ -d "$g" ] || continue
		find "$g" -depth -type d -delete 2> /dev/null || left=1
	done
	return $left
}
if ! own_groups; then
	echo "no control groups here: libvirtd does without"
	drop_groups
	groups=
	rm -f "$dir/cgroups"
	echo 'cgroup_controllers = []' >> "$dir/etc/qemu.conf"
fi

# Pid 1 joins the groups before it makes its namespace of them: they become the
# roots of what it sees. Whichever of us dies first takes the next one along. A
# process can only ask for that once it runs, when the other may be dead already:
# so each looks at its parent afterwards, and ends if that is not the one that
# started it. Pid 1 sees no parent in its own namespace, but /proc is still the
# machine's.
setpriv --pdeathsig KILL /bin/sh -c '
	[ "$PPID" = "$3" ] || exit 1
	exec unshare --mount --propagation private --net --pid --ipc --fork --kill-child /bin/sh -c '\''
		read -r line < /proc/self/stat
		set -- "$@" ${line##*) }
		[ "$5" = "$3" ] || exit 1
		for g in $2; do echo 0 > "$g/cgroup.procs" || exit 1; done
		exec unshare --cgroup /bin/sh "$1/inside.sh" "$1" "$2"'\'' sh "$1" "$2" $$' sh "$dir" "$groups" "$pid" 3<&- &
inside=$!
trap 'kill -KILL $inside' TERM
[ "$early" ] && kill -KILL $inside
watcher=
if [ "$owned" = owned ]; then
	# Nothing is ever written: reading ends when the owner does.
	setpriv --pdeathsig KILL /bin/sh -c '[ "$PPID" = "$1" ] || exit; read -r never <&3; kill -TERM $PPID' sh "$pid" &
	watcher=$!
	exec 3<&-
fi
while kill -0 $inside 2> /dev/null; do wait $inside; done
trap '' TERM
[ "$watcher" ] && kill -KILL "$watcher" && wait "$watcher"
cd /
for i in 1 2 3 4 5 6 7 8 9 10; do
	# Processes that were killed hold their groups for a moment.
	drop_groups && rm -rf "$dir" && break
	sleep 0.1
done
