# SPDX-License-Identifier: GPL-2.0-or-later
# Who is in the guest and how they are connected.
#
#   srv ── wan ── router, in the first namespace: br-lan with the access points ~~ cli1, cli2, ...
#
# `wan` delays and shapes; it is no end, whose stack would notice that its own queue is full.
# The router routes, with addresses of IPv6 where NETWORK says so, masquerades, or is a bridge alone.
# shellcheck shell=dash

case $NETWORK in
ipv6) LAN=fd00:: ROUTER_SIDE=fd00:1:: WAN_SIDE=fd00:2:: PREFIX=64 ;;
*) LAN=10.0.0. ROUTER_SIDE=10.0.1. WAN_SIDE=10.0.2. PREFIX=24 ;;
esac
ROUTER=${LAN}1
# Routers of IPv6 announce themselves by an address of the link.
LINK_ROUTER=fe80::1
case $NETWORK in
ipv6) GATEWAY=$LINK_ROUTER ;;
*) GATEWAY=$ROUTER ;;
esac
SERVER=${WAN_SIDE}2
CONTROL=/run/medium

inside() {
	local where=$1
	shift
	/bin/ip netns exec "$where" "$@"
}

# Tries again until it is so; time costs nothing here.
until_true() {
	local tries=600
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || fail "waited 60 s for: $*"
		sleep 0.1
	done
}

# Of a run, or of the whole lab: without its first process the guest ends.
fail() {
	echo "lab: $*"
	exit 1
}

# address NAMESPACE INTERFACE ADDRESS: at once usable, since nobody else has it.
address() {
	case $3 in
	*:*) /bin/ip -n "$1" addr add "$3/$PREFIX" dev "$2" nodad ;;
	*) /bin/ip -n "$1" addr add "$3/$PREFIX" dev "$2" ;;
	esac
}

# join NAMESPACE INTERFACE ADDRESS, NAMESPACE INTERFACE ADDRESS: a cable between two.
join() {
	/bin/ip -n "$1" link add "$2" type veth peer name "$5" netns "$4"
	[ -z "$3" ] || address "$1" "$2" "$3"
	address "$4" "$5" "$6"
	/bin/ip -n "$1" link set "$2" up
	/bin/ip -n "$4" link set "$5" up
}

lab_wires() {
	local name
	# The first namespace with a name, so that all can be called alike.
	/bin/ip netns attach router 1
	for name in srv wan; do
		/bin/ip netns add $name
		/bin/ip -n $name link set lo up
	done
	for name in router wan; do
		inside $name sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	done
	/bin/ip link add br-lan type bridge
	/bin/ip link set br-lan addrgenmode none
	address router br-lan $ROUTER
	[ "$NETWORK" != ipv6 ] || address router br-lan $LINK_ROUTER
	/bin/ip link set br-lan up
	join wan inet ${WAN_SIDE}1 srv eth0 $SERVER
	/bin/ip -n srv route add default via ${WAN_SIDE}1
	if [ "$NETWORK" = bridged ]; then
		GATEWAY=${LAN}254
		join router eth1 "" wan lan $GATEWAY
		/bin/ip link set eth1 master br-lan
		return
	fi
	join router eth1 ${ROUTER_SIDE}1 wan lan ${ROUTER_SIDE}2
	/bin/ip route add "${WAN_SIDE}0/$PREFIX" via ${ROUTER_SIDE}2
	if [ "$NETWORK" = masquerade ]; then
		nft "add table ip lab; add chain ip lab out { type nat hook postrouting priority srcnat; }; add rule ip lab out oifname eth1 masquerade"
	else
		/bin/ip -n wan route add "${LAN}0/$PREFIX" via ${ROUTER_SIDE}1
	fi
}

# Anew for each run, so that none finds what another left in the queue.
lab_wan() {
	local port
	for port in lan inet; do
		inside wan /sbin/tc qdisc del dev $port root 2>/dev/null
		inside wan /sbin/tc qdisc add dev $port root netem \
			rate "$WAN_RATE" limit "$WAN_QUEUE" delay "$WAN_DELAY"
	done
}

lab_air() {
	mkfifo $CONTROL
	# Before everything else: what it carries has left its sender already.
	chrt -f 50 medium --access-points "$ACCESS_POINTS" --stations "$STATIONS" \
		--control $CONTROL &
}

lab_access_point() {
	local conf=/run/hostapd.$1.conf
	cat >"$conf" <<-END
		interface=wlan$1
		bridge=br-lan
		driver=nl80211
		ctrl_interface=/run/hostapd
		ssid=lab
		hw_mode=g
		channel=1
		ieee80211n=1
		wmm_enabled=1
		ht_capab=[SHORT-GI-20]
	END
	[ "$SECURITY" = open ] || cat >>"$conf" <<-END
		wpa=2
		wpa_key_mgmt=WPA-PSK
		rsn_pairwise=CCMP
		wpa_passphrase=$SECRET
	END
	hostapd -B -P "/run/hostapd.$1.pid" -f "/run/hostapd.$1.log" "$conf" >/dev/null || cat "/run/hostapd.$1.log"
}

SECRET=not-a-secret

# lab_station N: the Nth, with the radio after those of the access points.
lab_station() {
	local radio=$((ACCESS_POINTS + $1 - 1)) conf=/run/station.$1.conf who=cli$1
	/bin/ip netns add "$who"
	/bin/ip -n "$who" link set lo up
	/sbin/iw phy "phy$radio" set netns name "$who"
	{
		echo "ctrl_interface=/run/wpa_supplicant"
		echo "network={"
		echo "	ssid=\"lab\""
		echo "	scan_freq=2412"
		case $SECURITY in
		open) echo "	key_mgmt=NONE" ;;
		*) echo "	psk=\"$SECRET\"" ;;
		esac
		echo "}"
	} >"$conf"
	inside "$who" wpa_supplicant -B -i "wlan$radio" -c "$conf" -f "/run/station.$1.log" >/dev/null
	until_true station_is_on "$1"
	address "$who" "wlan$radio" "$LAN$((100 + $1))"
	/bin/ip -n "$who" route add default via $GATEWAY dev "wlan$radio"
	inside "$who" /sbin/iw dev "wlan$radio" set power_save "$POWER_SAVE"
	until_true inside "$who" ping -c 1 -W 1 $SERVER
}

station_is_on() {
	inside "cli$1" wpa_cli -i "wlan$((ACCESS_POINTS + $1 - 1))" status | grep -qx wpa_state=COMPLETED
}

lab_up() {
	local n
	modprobe mac80211_hwsim radios=$((ACCESS_POINTS + STATIONS))
	lab_wires
	lab_wan
	lab_air
	n=0
	while [ "$n" -lt "$ACCESS_POINTS" ]; do
		lab_access_point "$n"
		n=$((n + 1))
	done
	n=1
	while [ "$n" -le "$STATIONS" ]; do
		lab_station "$n"
		n=$((n + 1))
	done
}
