# SPDX-License-Identifier: GPL-2.0-or-later
# One run: the air of this run, the daemon if it takes part, the programs, and what they leave.
# shellcheck shell=dash
# shellcheck disable=SC2154 # `logs` and all that is in capital letters the plan says

# That of the daemon's table.
case $NETWORK in
bridged) FAMILY=bridge ;;
*) FAMILY=inet ;;
esac

# A daemon that holds packets needs a moment to let go.
GRACE_S=10

run() {
	local outcome
	lab_wan
	medium "begin $AIR $SEED $logs/air.csv" "$logs/air.csv.begun"
	[ "$ASSIST" != pemi ] || start_pemi || return 1
	stations before
	eval "$BEFORE" || return 1
	[ "$ASSIST" != pemi ] || threads before
	now >"$logs/began"
	head -n 1 /proc/stat >"$logs/processor.before"
	eval "timeout $LIMIT_S /bin/ip netns exec cli1 $CLIENT" >"$logs/client.out" 2>"$logs/client.err"
	outcome=$?
	head -n 1 /proc/stat >"$logs/processor.after"
	now >"$logs/finished"
	# Something beside the run may have started it anew.
	[ "$ASSIST" != pemi ] || PEMI=$(cat /run/pemi.number)
	[ "$ASSIST" != pemi ] || threads after
	stations after
	eval "${AFTER:-}" || return 1
	[ "$ASSIST" != pemi ] || stop_pemi
	# shellcheck disable=SC2046 # several numbers
	kill $(cat "$logs"/*.pid) 2>/dev/null
	# They write to files that are to be whole.
	wait
	medium end "$logs/air.csv.ended"
	inside wan /sbin/tc -s -j qdisc show >"$logs/wan.json"
	rm -rf "$logs"/air.csv.* "$logs"/warm.csv* "$logs/www"
	return $outcome
}

# medium COMMAND FILE: tells the air, and waits for the file by which it says that it is so.
medium() {
	echo "$1" >"$CONTROL"
	until_true test -e "$2"
}

# in_background NAME NAMESPACE COMMAND...: until the run ends.
in_background() {
	later 0 "$@"
}

# later SECONDS NAME NAMESPACE COMMAND...
later() {
	local delay=$1 name=$2 where=$3
	shift 3
	{
		sleep "$delay"
		exec /bin/ip netns exec "$where" "$@"
	} >"$logs/$name.out" 2>"$logs/$name.err" &
	echo $! >"$logs/$name.pid"
}

# roaming EVERY_S FIRST_S: the first client moves to the other access point, and back, so often.
roaming() {
	(
		next=1
		sleep "$2"
		while true; do
			inside cli1 wpa_cli -i "wlan$ACCESS_POINTS" roam "02:00:00:00:0$next:00" >/dev/null
			echo "$(cut -d' ' -f1 /proc/uptime) $next" >>"$logs/roamed"
			next=$((1 - next))
			sleep "$1"
		done
	) &
	echo $! >"$logs/roaming.pid"
}

# server COMMAND...: ours say when they can be reached.
server() {
	in_background server srv "$@"
	until_true grep -q listening "$logs/server.out"
}

# certificate: what a server with TLS that makes none itself needs, beside its logs.
certificate() {
	printf '[req]\ndistinguished_name=dn\n[dn]\n' >"$logs/openssl.conf" &&
		openssl req -x509 -config "$logs/openssl.conf" -newkey ec \
			-pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=pemi-test \
			-keyout "$logs/key.pem" -out "$logs/certificate.pem" 2>"$logs/openssl.err"
}

# web_files BYTES CONGESTION-CONTROL NGINX-CONF: what a web server needs besides.
web_files() {
	inside srv sysctl -qw "net.ipv4.tcp_congestion_control=$2" &&
		mkdir "$logs/www" && truncate -s "$1" "$logs/www/file" && echo "$3" >"$logs/nginx.conf"
}

# listens NAMESPACE PORT: whether a TCP socket waits at this port, in four hexadecimal digits.
listens() {
	inside "$1" grep -q ":$2 [0-9A-F:]* 0A" /proc/net/tcp /proc/net/tcp6
}

start_pemi() {
	local where='"network": "lan", "devices": "br-lan"'
	[ "$NETWORK" != bridged ] || where='"mode": "bridged", "device": "wlan0"'
	cat >/run/pemi.json <<-END
		{"enabled": "1", $where, "firewall": "nft", "port": "$PORT", "log_level": "info"}
	END
	rm -f /run/pemi/control.sock
	chown pemi "$logs"
	# shellcheck disable=SC2086 # several words
	pemi run --config /run/pemi.json --user pemi --seccomp /etc/seccomp/pemi.json \
		--events "$logs/events.jsonl" $PEMI_OPTIONS >"$logs/pemi.out" 2>&1 &
	PEMI=$!
	echo "$PEMI" >/run/pemi.number
	until_true pemi status
	until_true nft list table "$FAMILY" pemi
	pemi rules --config /run/pemi.json >"$logs/rules.nft"
}

stop_pemi() {
	local tries=$((GRACE_S * 10))
	pemi status --json >"$logs/status.json"
	cp "/proc/$PEMI/stat" "$logs/pemi.stat"
	grep VmHWM "/proc/$PEMI/status" >"$logs/pemi.memory"
	asked=$(pemi_asked)
	until_true pemi_has_asked_again
	pemi clients --json >"$logs/clients.json"
	kill "$PEMI"
	while [ -e "/proc/$PEMI" ] && [ "$tries" -gt 0 ]; do
		sleep 0.1
		tries=$((tries - 1))
	done
}

# A firewall as fw4 makes it where flow offloading is on, with our rule in it, if there is one.
offload() {
	nft -f - <<-END
		add table inet fw4
		delete table inet fw4
		table inet fw4 {
			flowtable ft {
				hook ingress priority filter
				devices = { br-lan, eth1 }
			}
			chain seen {
				type filter hook forward priority -400; policy accept;
				udp sport $PORT counter
			}
			chain forward {
				type filter hook forward priority filter; policy accept;
				meta l4proto { tcp, udp } flow offload @ft
				ct state established,related accept
			}
		}
	END
	[ "$ASSIST" != pemi ] || pemi rules --config /run/pemi.json --fw4 | nft -f -
}

# counters WHEN: packets to clients that came by rules, and those that came to the queue.
counters() {
	{
		nft list chain inet fw4 seen
		nft list chain "$FAMILY" pemi help
	} 2>/dev/null | grep -o 'counter packets [0-9]*' | cut -d' ' -f3 >"$logs/counters.$1"
}

gate_is() {
	pemi clients --json | grep -q "\"gate\":\"$1\""
}

# Nobody but a client that loses nothing is there for so long that the rules leave its packets alone.
until_the_rules_rest() {
	until_the_gate_is_closed
	# What connection tracking remembers, to the next whole minute.
	sleep 250
	pemi status --json | grep -q '"resting":true' || fail 'the rules do not rest'
}

# Downloads until the client is known to lose nothing. What follows is logged from its beginning.
until_the_gate_is_closed() {
	medium "begin clean $SEED $logs/warm.csv" "$logs/warm.csv.begun"
	eval "/bin/ip netns exec cli1 $CLIENT" >/dev/null 2>&1
	[ "$ASSIST" != pemi ] || until_true gate_is closed
	rm "$logs/air.csv.begun"
	medium "begin clean $SEED $logs/air.csv" "$logs/air.csv.begun"
	counters before
}

# at SECONDS COMMAND...: while the client works.
at() {
	(
		sleep "$1"
		shift
		"$@"
	) &
}

# The air becomes that of this run.
turns_bad() {
	counters turned
	rm "$logs/air.csv.begun"
	medium "begin $AIR $SEED $logs/air.csv" "$logs/air.csv.begun"
}

# Notes what comes from the servers to the router.
watch_wan() {
	in_background wan router stream watch --at eth1 --port "$PORT" --out "$logs/wan.csv"
	until_true grep -q listening "$logs/wan.out"
}

# amid PACKETS COMMAND...: when so many of these have come.
amid() {
	(
		until_true has_come "$1"
		shift
		"$@"
	) &
}

has_come() {
	[ "$(wc -l <"$logs/wan.csv")" -gt "$1" ]
}

# What may happen to a router; bed/troubles.py has when.

# dies SECONDS: and is started again then.
dies() {
	kill -9 "$PEMI"
	sleep "$1"
	start_pemi
}

# hangs SECONDS: all of the daemon but its guard, which is another process.
hangs() {
	kill -STOP "$PEMI"
	sleep "$1"
	kill -CONT "$PEMI"
}

# freezes THREAD SECONDS: one thread of the daemon.
freezes() {
	local it=/run/freezer/one task
	mkdir -p /run/freezer
	mount -t cgroup2 freezer /run/freezer
	mkdir -p "$it"
	echo threaded >"$it/cgroup.type"
	for task in "/proc/$PEMI/task"/*; do
		[ "$(cat "$task/comm")" != "$1" ] || echo "${task##*/}" >"$it/cgroup.threads"
	done
	echo 1 >"$it/cgroup.freeze"
	sleep "$2"
	cat "$it/cgroup.events" >"$logs/frozen"
	echo 0 >"$it/cgroup.freeze"
	umount /run/freezer
}

reads_again() {
	kill -HUP "$PEMI"
}

# An option that takes a new start in the same process.
starts_anew() {
	sed 's/"enabled"/"queues": 2, "enabled"/' /run/pemi.json >/run/pemi.json.new
	mv /run/pemi.json.new /run/pemi.json
	kill -HUP "$PEMI"
}

# A host behind another device, as far as the kernel has heard, has the first client's address.
claims_its_address() {
	/bin/ip link add guest0 type veth peer name guest1
	/bin/ip link set guest0 up
	/bin/ip link set guest1 up
	/bin/ip neigh replace "${LAN}101" lladdr 02:00:00:00:99:99 dev guest0 nud permanent
}

# The access point's counters of a station begin anew with each association.
counted_anew() {
	now >>"$logs/roamed"
}

# The first client associates again, as if it had been told to.
associates_again() {
	counted_anew
	inside cli1 wpa_cli -i "wlan$ACCESS_POINTS" reassociate
}

# leaves SECONDS: and comes back then.
leaves() {
	counted_anew
	inside cli1 wpa_cli -i "wlan$ACCESS_POINTS" disconnect
	sleep "$1"
	inside cli1 wpa_cli -i "wlan$ACCESS_POINTS" reconnect
}

# vanishes SECONDS: the access point's interface, and another one comes in its place.
vanishes() {
	counted_anew
	/sbin/iw dev wlan0 del
	sleep "$1"
	kill "$(cat /run/hostapd.0.pid)"
	until_true test ! -e /run/hostapd.0.pid
	/sbin/iw phy phy0 interface add wlan0 type managed
	lab_access_point 0
}

# threads WHEN: the time, and what each thread of the daemon has used of the processor, in ns.
threads() {
	local task name used
	now
	for task in "/proc/$PEMI/task"/*; do
		# It may have been killed.
		[ -e "$task" ] || continue
		read -r name <"$task/comm"
		read -r used _ <"$task/schedstat"
		echo "$name $used"
	done
} >"$logs/threads.$1"

# How often the daemon has asked the access points.
pemi_asked() {
	pemi status --json | grep -o '"radio":{.*' | grep -o '"asked":[0-9]*' | head -n 1 | cut -d: -f2
}

pemi_has_asked_again() {
	[ "$(pemi_asked)" -gt "$asked" ]
}

# What the access points count of their stations.
stations() {
	local n=0
	while [ "$n" -lt "$ACCESS_POINTS" ]; do
		/sbin/iw dev "wlan$n" station dump
		n=$((n + 1))
	done >"$logs/stations.$1"
}
