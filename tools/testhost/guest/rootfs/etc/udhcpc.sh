#!/bin/sh
# What udhcpc runs when its lease changes. /run/ip/INTERFACE holds the address.
case $1 in
deconfig)
	rm -f "/run/ip/$interface"
	ip -4 addr flush dev "$interface"
	ip link set "$interface" up
	;;
bound | renew)
	ip -4 addr flush dev "$interface"
	ip addr add "$ip/${mask:-24}" dev "$interface"
	for r in $router; do
		ip route add default via "$r" dev "$interface" 2> /dev/null
		break
	done
	echo "$ip" > "/run/ip/$interface"
	;;
esac
