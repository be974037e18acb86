#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What the drivers of this router's access points say of their stations, before and after some
# seconds in which clients download something, as JSON on standard output:
#   sh radio.sh 60 >my-radio.json
# Needs iw, which every OpenWrt with Wi-Fi has, and no right; the package pemi, if it runs, tells
# what it makes of the same. Stations have numbers instead of their addresses, clients no names.
# shellcheck shell=dash
# shellcheck disable=SC3043 # ash has local
export LC_ALL=C

IW=${IW:-iw}
PEMI=${PEMI:-pemi}
WAIT_S=${1:-60}

fail() {
	echo "radio.sh: $*" >&2
	exit 2
}

# A JSON string: of ASCII only what needs no care in one.
text() {
	printf '"%s"' "$(printf '%s' "$1" | tr -cd '\40\41\43-\133\135-\176')"
}

model() {
	local file

	for file in /tmp/sysinfo/model /proc/device-tree/model /sys/class/dmi/id/product_name; do
		[ ! -r "$file" ] || tr -d '\0' <"$file"
		[ ! -r "$file" ] || break
	done
}

release() {
	# shellcheck disable=SC1091 # on a router only
	(. /etc/openwrt_release && echo "$DISTRIB_DESCRIPTION $DISTRIB_TARGET") 2>/dev/null ||
		sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release 2>/dev/null
}

# Interfaces that are access points.
access_points() {
	"$IW" dev | awk '$1 == "Interface" { name = $2 } $1 == "type" && $2 ~ /^AP/ { print name }'
}

driver() {
	local link

	link=$(readlink "/sys/class/net/$1/device/driver")
	printf '%s' "${link##*/}"
}

# Whether the radio's hardware forwards by itself (WED), where the driver says so.
wed() {
	local file value=null

	for file in /sys/module/mt7915e/parameters/wed_enable /sys/module/mt7996e/parameters/wed_enable; do
		[ ! -r "$file" ] || value=$(text "$(cat "$file")")
	done
	printf '%s' "$value"
}

# Who was seen, an address a line: the number of the line is the number of the station.
seen=$(mktemp) || fail "no temporary file"
trap 'rm -f "$seen"' EXIT

# The counters of an interface's stations.
stations() {
	"$IW" dev "$1" station dump | awk -v seen="$seen" '
		BEGIN {
			while ((getline line <seen) > 0)
				number[line] = ++known
			split("tx packets|tx retries|tx failed|rx packets|connected time|signal avg|tx bitrate", wanted, "|")
		}
		function finish() {
			if (open)
				printf "}"
		}
		$1 == "Station" {
			finish()
			if (!($2 in number)) {
				number[$2] = ++known
				print $2 >>seen
			}
			printf "%s{\"station\":%d", open ? "," : "", number[$2]
			open = 1
		}
		{
			for (at in wanted)
				if (index($0, "\t" wanted[at] ":") == 1) {
					value = $0
					sub(/^[^:]*:[ \t]*/, "", value)
					sub(/[^-0-9.].*$/, "", value)
					if (value != "")
						printf ",\"%s\":%s", wanted[at], value
				}
		}
		END { finish() }'
}

# All access points, as an object.
all() {
	local name comma=''

	for name in $points; do
		printf '%s' "$comma"
		text "$name"
		printf ':[%s]' "$(stations "$name")"
		comma=,
	done
}

interfaces() {
	local name comma=''

	for name in $points; do
		printf '%s{"name":' "$comma"
		text "$name"
		printf ',"driver":'
		text "$(driver "$name")"
		printf ',"channel":'
		text "$("$IW" dev "$name" info | sed -n 's/^[[:space:]]*channel //p')"
		printf '}'
		comma=,
	done
}

# What the daemon says, without addresses and names.
clients() {
	local answer

	answer=$("$PEMI" clients --json 2>/dev/null) || answer=null
	printf '%s' "$answer" | sed \
		-e 's/"addresses":\[[^]]*\]/"addresses":[]/g' \
		-e 's/"mac":"[^"]*"/"mac":null/g' \
		-e 's/"name":"[^"]*"/"name":null/g'
}

# What came of asking for the fate of single packets since the daemon started, where it runs with `repair auto` or
# `radio`.
reports() {
	local answer

	answer=$("$PEMI" status --json 2>/dev/null | sed -n 's/.*"reports":\({[^}]*}\).*/\1/p')
	printf '%s' "${answer:-null}"
}

case "$WAIT_S" in
-h | --help)
	echo "usage: sh radio.sh [SECONDS]: what the access points' drivers say before and after, as JSON"
	exit 0
	;;
'' | 0?* | *[!0-9]*) fail "seconds: '$WAIT_S' is no number; usage: sh radio.sh [SECONDS]" ;;
esac
command -v "$IW" >/dev/null || fail "there is no $IW here; install the package iw"
points=$(access_points)
[ -n "$points" ] || fail "no interface of this machine is an access point"

before=$(all)
reports_before=$(reports)
echo "radio.sh: let a client at the edge of the Wi-Fi download something large now; $WAIT_S s" >&2
sleep "$WAIT_S" || fail "seconds: cannot wait for '$WAIT_S'"
after=$(all)
reports_after=$(reports)
case $after in
*'"station"'*) ;;
*) echo "radio.sh: no client was connected to this router's own Wi-Fi" >&2 ;;
esac
case $reports_after in
"$reports_before") echo "radio.sh: no packet's fate was asked for; hardware/radios.md says what that takes" >&2 ;;
esac

printf '{"model":'
text "$(model)"
printf ',"release":'
text "$(release)"
printf ',"kernel":'
text "$(uname -r)"
printf ',"wed":%s,"seconds":%s,"access_points":[%s]' "$(wed)" "$WAIT_S" "$(interfaces)"
printf ',"before":{%s},"after":{%s},"pemi":%s' "$before" "$after" "$(clients)"
printf ',"reports":{"before":%s,"after":%s}}\n' "$reports_before" "$reports_after"
