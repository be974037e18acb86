# shellcheck shell=dash
# shellcheck disable=SC3043 # ash has local

network_get_device() {
	local network device

	unset "$1"
	[ -e /var/state/devices ] || return 1
	while read -r network device; do
		if [ "$network" = "$2" ] && [ -n "$device" ]; then
			eval "$1=\$device"
			return 0
		fi
	done </var/state/devices
	return 1
}
