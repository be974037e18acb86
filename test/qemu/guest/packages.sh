# SPDX-License-Identifier: GPL-2.0-or-later
# What the scripts of packages call, a part of /lib/functions.sh on a router.
# shellcheck shell=dash
# shellcheck disable=SC1090,SC2013,SC3043 # on a router only; no such path has a space; ash has local

_info=/usr/lib/opkg/info

# Those that the package's field Require-User names: user=id:group=id.
_add_users() {
	local users user group

	users=$(sed -n 's/^Require-User: *//p' "$_info/$1.control")
	for user in $users; do
		group=${user#*:} user=${user%%:*}
		grep -q "^${group%=*}:" /etc/group || echo "${group%=*}:x:${group#*=}:" >>/etc/group
		grep -q "^${user%=*}:" /etc/passwd ||
			echo "${user%=*}:x:${user#*=}:${group#*=}:${user%=*}:/var/run/${user%=*}:/bin/false" >>/etc/passwd
	done
}

_init_scripts() {
	grep '^/etc/init\.d/' "$_info/$1.list"
}

default_postinst() {
	local name script

	name=$(basename "${1%.*}")
	_add_users "$name"
	for script in $(grep '^/etc/uci-defaults/' "$_info/$name.list"); do
		if (. "$script"); then rm -f "$script"; fi
	done
	uci commit
	rm -f /tmp/luci-indexcache.*
	[ ! -e "$_info/$name.postinst-pkg" ] || (. "$_info/$name.postinst-pkg")
	for script in $(_init_scripts "$name"); do
		[ "$PKG_UPGRADE" = 1 ] || "$script" enable
		"$script" start
	done
}

default_prerm() {
	local script

	for script in $(_init_scripts "$(basename "${1%.*}")"); do
		[ "$PKG_UPGRADE" = 1 ] || "$script" disable
		"$script" stop
	done
}
