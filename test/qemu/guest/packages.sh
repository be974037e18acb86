# SPDX-License-Identifier: GPL-2.0-or-later
# What the scripts of packages call, a part of /lib/functions.sh on a router.
# shellcheck shell=dash
# shellcheck disable=SC1090,SC2013,SC3043 # on a router only; no such path has a space; ash has local

_opkg=/usr/lib/opkg/info
_apk=/lib/apk/packages

# The users that a package needs, user=id:group=id. apk's scripts call it themselves.
add_group_and_user() {
	local name=${pkgname:-$1} users user group

	users=$(cat "$_apk/$name.rusers" 2>/dev/null ||
		sed -n 's/^Require-User: *//p' "$_opkg/$name.control" 2>/dev/null)
	for user in $users; do
		group=${user#*:} user=${user%%:*}
		grep -q "^${group%=*}:" /etc/group || echo "${group%=*}:x:${group#*=}:" >>/etc/group
		grep -q "^${user%=*}:" /etc/passwd ||
			echo "${user%=*}:x:${user#*=}:${group#*=}:${user%=*}:/var/run/${user%=*}:/bin/false" >>/etc/passwd
	done
}

# _files NAME FOLDER: those of a package there, whichever of the two has installed it.
_files() {
	local list=$_apk/$1.list

	[ -e "$list" ] || list=$_opkg/$1.list
	grep "^$2" "$list"
}

default_postinst() {
	local name=${pkgname:-$(basename "${1%.*}")} script

	[ -n "$pkgname" ] || add_group_and_user "$name"
	for script in $(_files "$name" /etc/uci-defaults/); do
		if (. "$script"); then rm -f "$script"; fi
	done
	uci commit
	rm -f /tmp/luci-indexcache.*
	[ ! -e "$_opkg/$name.postinst-pkg" ] || (. "$_opkg/$name.postinst-pkg")
	for script in $(_files "$name" /etc/init.d/); do
		[ "$PKG_UPGRADE" = 1 ] || "$script" enable
		"$script" start
	done
}

default_prerm() {
	local script

	for script in $(_files "${pkgname:-$(basename "${1%.*}")}" /etc/init.d/); do
		[ "$PKG_UPGRADE" = 1 ] || "$script" disable
		"$script" stop
	done
}
