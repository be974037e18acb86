#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# rig.sh WORK: a router in namespaces with real ubusd, procd, netifd, rpcd, uhttpd and LuCI.
# Says the process id of its init when pages can be loaded; all ends with it (SIGKILL).
#
#   LUCI_ROOT        a LuCI source tree
#   OPENWRT_ROOTFS   a root directory of OpenWrt for this machine, with what `needed` names
#   PEMI             the daemon, target/release/pemi
set -euo pipefail
: "${LUCI_ROOT:?}" "${OPENWRT_ROOTFS:?}"
top=$(cd "$(dirname "$0")/../.." && pwd)
pemi=${PEMI:-$top/target/release/pemi}
root=$1/root

needed=(bin/busybox usr/bin/{flock,jsonfilter} sbin/{ubusd,procd,netifd,rpcd} usr/sbin/uhttpd usr/lib/uhttpd_{ubus,ucode}.so
  usr/lib/rpcd/{file,luci,ucode}.so usr/lib/ucode/{html,lucihttp,luci/core}.so)
for file in "${needed[@]/#/$OPENWRT_ROOTFS/}" "$LUCI_ROOT/modules/luci-base" "$pemi"; do
  [ -e "$file" ] || { echo "rig: $file is missing" >&2 && exit 1; }
done
rm -rf "$1" && mkdir -p "$1" && cp -a "$OPENWRT_ROOTFS" "$root"

install_luci() { # part of the tree
  [ -d "$1" ] || return 0
  mkdir -p "$root/www"
  [ ! -d "$1/htdocs" ] || cp -r "$1/htdocs/." "$root/www/"
  [ ! -d "$1/root" ] || cp -r "$1/root/." "$root/"
  [ ! -d "$1/ucode" ] || { mkdir -p "$root/usr/share/ucode/luci" &&
    cp -r "$1/ucode/." "$root/usr/share/ucode/luci/"; }
}
for part in modules/luci-base modules/luci-mod-{status,system,network} themes/luci-theme-bootstrap; do
  install_luci "$LUCI_ROOT/$part"
done
install_luci "$top/luci-app-pemi"
cp -r "$top/files/." "$root/"
install -m 755 "$pemi" "$root/usr/sbin/pemi"
chmod 755 "$root"/etc/init.d/*
# A daemon built for this machine takes this machine's libraries, where they are here.
{ ldd "$pemi" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r library; do
  [ -e "$root$library" ] || install -D "$library" "$root$library"
done

# The names that LuCI's packages have for the languages; po2lmo is LuCI's.
cp -r "$LUCI_ROOT/modules/luci-base/src" "$1/po2lmo"
if make -C "$1/po2lmo" po2lmo >/dev/null 2>&1; then
  mkdir -p "$root/usr/lib/lua/luci/i18n"
  for language in de:de zh_Hans:zh-cn; do
    for part in "$LUCI_ROOT"/modules/luci-{base,mod-status} "$top/luci-app-pemi"; do
      for po in "$part/po/${language%:*}"/*.po; do
        [ ! -e "$po" ] || "$1/po2lmo/po2lmo" "$po" \
          "$root/usr/lib/lua/luci/i18n/$(basename "$po" .po).${language#*:}.lmo"
      done
    done
  done
fi

grep -q '^pemi:' "$root/etc/passwd" || {
  echo 'pemi:x:5443:5443:pemi:/var/run/pemi:/bin/false' >>"$root/etc/passwd"
  echo 'pemi:x:5443:pemi' >>"$root/etc/group"
}
# What the packages' first boot would have done, and a reader and a stranger beside root.
cat >"$root/etc/config/network" <<'CONFIG'
config interface 'loopback'
	option device 'lo'
	option proto 'static'
	option ipaddr '127.0.0.1'
	option netmask '255.0.0.0'
config interface 'lan'
	option device 'br-lan'
	option proto 'static'
	option ipaddr '192.168.1.1'
	option netmask '255.255.255.0'
config interface 'guest'
	option device 'eth9'
	option proto 'static'
	option ipaddr '192.168.9.1'
	option netmask '255.255.255.0'
CONFIG
[ -e "$root/etc/config/system" ] || printf "config system\n\toption hostname 'OpenWrt'\n" >"$root/etc/config/system"
cat >"$root/etc/config/luci" <<'CONFIG'
config core 'main'
	option lang 'en'
	option mediaurlbase '/luci-static/bootstrap'
	option resourcebase '/luci-static/resources'
config internal 'themes'
	option Bootstrap '/luci-static/bootstrap'
	option BootstrapDark '/luci-static/bootstrap-dark'
config internal 'apply'
	option rollback '90'
	option holdoff '4'
	option timeout '5'
	option display '1.5'
config internal 'languages'
config internal 'diag'
CONFIG
hash=$(openssl passwd -1 secret)
cat >"$root/etc/config/rpcd" <<CONFIG
config rpcd
	option socket /var/run/ubus/ubus.sock
	option timeout 30
config login
	option username 'root'
	option password '$(openssl passwd -1 rootpass)'
	list read '*'
	list write '*'
config login
	option username 'reader'
	option password '$hash'
	list read 'luci-base'
	list read 'unauthenticated'
	list read 'luci-mod-status-index'
	list read 'luci-app-pemi'
config login
	option username 'stranger'
	option password '$hash'
	list read 'luci-base'
	list read 'unauthenticated'
	list read 'luci-mod-status-index'
CONFIG
sed -i "s/option enabled '1'/option enabled '0'/" "$root/etc/config/pemi"

cat >"$root/rig-init" <<'INIT'
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=755,size=1M tmpfs /dev
while read -r name minor; do mknod -m 666 "/dev/$name" c 1 "$minor"; done <<NODES
null 3
zero 5
full 7
random 8
urandom 9
NODES
mkdir -p /tmp/run/ubus /tmp/lock /tmp/log /tmp/etc /tmp/lib /tmp/state /dev/pts
chown ubus:ubus /tmp/run/ubus
ip link set lo up
pause() { # not every busybox knows fractions
  usleep 100000 2>/dev/null || sleep 0.1 2>/dev/null || sleep 1
}
awaited() { # object
  n=0
  until ubus -S list "$1" >/dev/null 2>&1; do
    n=$((n + 1)); [ $n -lt 100 ] || { echo "no $1 on ubus" >&2; exit 1; }
    pause
  done
}
start-stop-daemon -S -b -c ubus:ubus -x /sbin/ubusd -- -s /var/run/ubus/ubus.sock
until [ -S /var/run/ubus/ubus.sock ]; do pause; done
[ ! -x /sbin/logd ] || { /sbin/logd -S 256 & awaited log; }
/sbin/procd -S -d 0 -s /var/run/ubus/ubus.sock >/tmp/procd.log 2>&1 &
awaited service
/sbin/rpcd -s /var/run/ubus/ubus.sock >/tmp/rpcd.log 2>&1 &
awaited luci-rpc
/etc/init.d/network start >/tmp/netifd.log 2>&1
awaited network.interface.lan
/etc/init.d/pemi enable
/etc/init.d/pemi start
uhttpd -f -h /www -r OpenWrt -x /cgi-bin -u /ubus -U /var/run/ubus/ubus.sock \
  -o /cgi-bin/luci -O /usr/share/ucode/luci/uhttpd.uc -p 0.0.0.0:80 -t 60 -T 30 -k 20 -A 1 -n 3 -N 100 \
  >/tmp/uhttpd.log 2>&1 &
until wget -q -O /dev/null http://127.0.0.1/ 2>/dev/null; do pause; done
: >/tmp/ready
while :; do sleep 100000 & wait $!; done
INIT
chmod 755 "$root/rig-init"
mkdir -p "$root/.old" "$root"/{proc,sys,tmp,dev}

# The first process of a pid namespace takes all others along when it goes.
setsid unshare --mount --net --pid --uts --ipc --fork --kill-child --propagation private bash -c "
  ip link add br-lan type veth peer name lan1 && ip link set lan1 up && # busybox's ip cannot
  mount --bind '$root' '$root' && cd '$root' && pivot_root . .old &&
  exec /bin/busybox sh -c '
    busybox mount --make-rprivate /; busybox umount -l /.old; exec /bin/sh /rig-init'
" </dev/null >"$1/log" 2>&1 &
holder=$!
for _ in $(seq 200); do
  init=$(pgrep -P $holder | head -n 1 || true)
  [ -z "$init" ] || [ ! -e "/proc/$init/root/tmp/ready" ] || { echo "$init" && exit 0; }
  kill -0 $holder 2>/dev/null || break
  sleep 0.1
done
echo "the rig did not come up; $1/log:" >&2
tail -n 20 "$1/log" >&2
kill $holder 2>/dev/null || true
exit 1
