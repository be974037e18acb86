# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash
# shellcheck disable=SC1091,SC3043 # on a router only; ash has local
. /usr/share/libubox/jshn.sh

procd_state=/var/run/procd

# The message to procd is built beside whatever else the script builds with jshn.
procd_json() {
	local other

	json_set_namespace procd other
	"$@"
	json_set_namespace "$other"
}

procd_array() {
	json_add_array "$1"
	shift
	while [ $# -gt 0 ]; do
		json_add_string '' "$1"
		shift
	done
	json_close_array
}

# Nobody else calls the script here.
procd_lock() { :; }

procd_open_service() {
	mkdir -p "$procd_state"
	procd_json json_init
	procd_json json_add_string name "$1"
	procd_json json_add_object instances
}

procd_close_service() {
	procd_json json_close_object
	procd_json json_add_array triggers
	service_triggers
	procd_json json_close_array
	procd_json json_dump >"$procd_state/told.json"
	[ ! -x /sbin/procd-standin ] || /sbin/procd-standin set
}

procd_open_instance() { procd_json json_add_object instance1; }
procd_close_instance() { procd_json json_close_object; }

procd_set_param() {
	local name=$1 pair

	shift
	case "$name" in
	command | file | respawn | netdev) procd_json procd_array "$name" "$@" ;;
	limits)
		procd_json json_add_object "$name"
		for pair in "$@"; do procd_json json_add_string "${pair%%=*}" "${pair#*=}"; done
		procd_json json_close_object
		;;
	reload_signal) procd_json json_add_int "$name" "$(kill -l "$1")" ;;
	term_timeout) procd_json json_add_int "$name" "$1" ;;
	user | group | capabilities) procd_json json_add_string "$name" "$1" ;;
	stdout | stderr | no_new_privs) procd_json json_add_boolean "$name" "$1" ;;
	*)
		echo "procd.sh: this stand-in does not know the parameter $name" >&2
		exit 99
		;;
	esac
}

procd_add_jail() {
	local word

	procd_json json_add_object jail
	procd_json json_add_string name "$1"
	shift
	for word in "$@"; do procd_json json_add_boolean "$word" 1; done
	procd_json json_add_object mount
	procd_json json_close_object
	procd_json json_close_object
}

procd_jail_mounts() {
	local writable=$1 path

	shift
	json_select jail
	json_select mount
	for path in "$@"; do json_add_string "$path" "$writable"; done
	json_select ..
	json_select ..
}
procd_add_jail_mount() { procd_json procd_jail_mounts 0 "$@"; }
procd_add_jail_mount_rw() { procd_json procd_jail_mounts 1 "$@"; }

procd_add_reload_trigger() { procd_json json_add_string '' "config.change $1"; }
procd_add_reload_interface_trigger() { procd_json json_add_string '' "interface.* $1"; }

procd_kill() {
	rm -f "$procd_state/told.json"
	[ ! -x /sbin/procd-standin ] || /sbin/procd-standin delete
}

_procd_status() {
	if [ -x /sbin/procd-standin ]; then
		/sbin/procd-standin status
	elif grep -q instance1 "$procd_state/told.json" 2>/dev/null; then
		echo running
	else
		echo inactive
		return 3
	fi
}
