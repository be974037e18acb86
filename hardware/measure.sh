#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What this router is and what it can carry, as JSON on standard output:
#   sh measure.sh >my-router.json
# Needs the packages pemi and pemi-tools and nothing else. For some seconds one processor is busy;
# traffic goes on. As root; without it the packet queue is not measured.
# shellcheck shell=dash
# shellcheck disable=SC3043 # ash has local
export LC_ALL=C

PEMI=${PEMI:-pemi}
SECONDS_EACH=${SECONDS_EACH:-5}

# A JSON string: of ASCII only what needs no care in one.
text() {
	printf '"%s"' "$(printf '%s' "$1" | tr -cd '\40\41\43-\133\135-\176')"
}

number() {
	case "$1" in
	'' | *[!0-9]*) printf null ;;
	*) printf '%s' "$1" ;;
	esac
}

# The first field of /proc/cpuinfo that says something, in the words of the architectures.
cpu() {
	local name value

	for name in 'model name' 'cpu model' 'Hardware' 'system type' 'CPU part'; do
		value=$(sed -n "s/^${name}[[:space:]]*: //p" /proc/cpuinfo | head -n 1)
		[ -z "$value" ] || break
	done
	printf '%s' "$value"
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
	(. /etc/openwrt_release && echo "$DISTRIB_DESCRIPTION $DISTRIB_TARGET $DISTRIB_ARCH") 2>/dev/null ||
		sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release 2>/dev/null
}

interfaces() {
	local path name driver comma=''

	for path in /sys/class/net/*; do
		name=${path##*/}
		[ -e "$path/device/driver" ] || continue
		driver=$(readlink "$path/device/driver")
		printf '%s{"name":' "$comma"
		text "$name"
		printf ',"driver":'
		text "${driver##*/}"
		printf ',"wireless":%s}' "$([ -e "$path/phy80211" ] && echo true || echo false)"
		comma=,
	done
}

kib() {
	sed -n "s/^$1:[[:space:]]*\([0-9]*\) kB$/\1/p" "$2" 2>/dev/null | head -n 1
}

# Of the daemon that runs: `pidof` would find scripts of that name as well, and its queue
# guard, which has its program.
daemon() {
	local path

	for path in /proc/[0-9]*; do
		[ "$(cat "$path/comm" 2>/dev/null)" = pemi ] || continue
		case "$(readlink "$path/exe" 2>/dev/null)" in
		*/sbin/pemi) printf '%s' "${path#/proc/}" && return ;;
		esac
	done
}

# The second is what measures, whatever the first is called.
if ! command -v "$PEMI" >/dev/null || ! command -v "$PEMI-tools" >/dev/null; then
	echo "measure.sh: there is no $PEMI or no $PEMI-tools here; install the packages pemi and pemi-tools, or say PEMI=/path/to/pemi" >&2
	exit 2
fi
queue=--queue
if [ "$(id -u)" != 0 ]; then
	echo "measure.sh: not root: the packet queue is not measured" >&2
	queue=
fi
# shellcheck disable=SC2086 # none or one word
result=$("$PEMI" bench $queue --seconds "$SECONDS_EACH") || {
	echo "measure.sh: measured without the packet queue" >&2
	result=$("$PEMI" bench) || exit 1
}
pid=$(daemon)

printf '{"model":'
text "$(model)"
printf ',"release":'
text "$(release)"
printf ',"kernel":'
text "$(uname -r)"
printf ',"machine":'
text "$(uname -m)"
printf ',"cpu":'
text "$(cpu)"
printf ',"cpus":'
number "$(grep -c '^processor' /proc/cpuinfo)"
printf ',"bogomips":'
text "$(sed -n 's/^[Bb]ogo[Mm][Ii][Pp][Ss][[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
printf ',"memory_kib":{"total":'
number "$(kib MemTotal /proc/meminfo)"
printf ',"available":'
number "$(kib MemAvailable /proc/meminfo)"
printf ',"pemi_resident":'
number "$([ -z "$pid" ] || kib VmRSS "/proc/$pid/status")"
printf '},"interfaces":[%s],"pemi":%s}\n' "$(interfaces)" "$result"
