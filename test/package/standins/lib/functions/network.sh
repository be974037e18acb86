# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash
# shellcheck disable=SC3043 # ash has local

network_get_device() {
	local _network _device

	unset "$1"
	[ -e /var/state/devices ] || return 1
	while read -r _network _device; do
		if [ "$_network" = "$2" ] && [ -n "$_device" ]; then
			eval "$1=\$_device"
			return 0
		fi
	done </var/state/devices
	return 1
}
