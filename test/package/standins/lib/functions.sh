# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash
# shellcheck disable=SC3043 # ash has local

append() {
	eval "$1=\"\${$1:+\$$1${3:- }}\$2\""
}

list_contains() {
	local items

	eval "items=\" \$$1 \""
	[ "${items#* "$2" }" != "$items" ]
}

reset_cb() {
	config_cb() { :; }
	option_cb() { :; }
	list_cb() { :; }
}
reset_cb

# What `uci export` prints are calls of these.
package() { :; }
config() { config_cb "$1" "$2"; }
option() { option_cb "$1" "$2"; }
list() { list_cb "$1" "$2"; }

config_load() {
	local text

	text=$(uci -q export "$1") || return 1
	eval "$text"
	# The last section has ended.
	config_cb
}
