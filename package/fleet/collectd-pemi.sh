#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# PEMI's figures for collectd, by its plugin exec (README.md beside this): asks the daemon now and
# then and prints lines of collectd's plain text protocol.
#
# collectd starts it, as the account pemi, and says by the environment who it is and how often it
# asks; at its end it sends a signal.

# shellcheck shell=dash
# shellcheck source=/dev/null
. /usr/share/libubox/jshn.sh

host=${COLLECTD_HOSTNAME:-$(cat /proc/sys/kernel/hostname)}
# Fractions are more than ash can do, and more than anybody needs.
interval=${COLLECTD_INTERVAL:-10}
interval=${interval%.*}

# put TYPE-INSTANCE VALUE: `derive` are counters, which may begin again; `gauge` are not.
put() {
	[ -z "$2" ] || echo "PUTVAL \"$host/pemi/$1\" interval=$interval N:$2"
}

# from GROUP TYPE MEMBER...
from() {
	local group="$1" type="$2" member value
	shift 2
	json_select "$group" 2>/dev/null || return 0
	for member; do
		json_get_var value "$member"
		put "$type-${group}_$member" "$value"
	done
	json_select ..
}

one_network() {
	local device ratio interval_low interval_high back_s keys
	json_select "$2"
	json_get_vars device ratio back_s
	put "gauge-benefit_ratio_$device" "$ratio"
	if json_select interval 2>/dev/null; then
		json_get_keys keys
		[ -z "$keys" ] || {
			json_get_var interval_low 1
			json_get_var interval_high 2
			put "gauge-benefit_low_$device" "$interval_low"
			put "gauge-benefit_high_$device" "$interval_high"
		}
		json_select ..
	fi
	if [ -n "$back_s" ]; then back_s=1; else back_s=0; fi
	put "gauge-stands_back_$device" "$back_s"
	json_select ..
}

ask() {
	local answer
	answer=$(pemi "$1" --json 2>/dev/null) || return 1
	json_load "$answer" 2>/dev/null
}

once() {
	if ! ask status; then
		put gauge-up 0
		return
	fi
	put gauge-up 1
	from packets derive down up
	from bytes derive down up
	from losses derive inferred repaired upstream congestion
	from resent derive packets bytes limited errors
	from concealed derive gaps held late
	from flows gauge active protected bypassed
	from cache gauge bytes limit
	if ask benefit; then
		json_for_each_item one_network networks
	fi
}

# Only those that ask for one scrape give an argument.
once
while [ "$1" != once ]; do
	sleep "$interval"
	once
done
