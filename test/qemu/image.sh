#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes a router to boot: out/qemu/ARCH/kernel and initrd.cpio, from Debian's
# kernel, busybox, nftables, iproute2 and conntrack, and OpenWrt's uci and jshn.
#   image.sh x86_64|arm64|mipsel
# Quick when it is there and nothing it is made of has changed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
debian=$root/test/package/debian.sh
realtools=$root/test/package/realtools.sh
standins=$root/test/package/standins

case ${1:-} in
  x86_64) arch=amd64 kernel=cloud-amd64 tools=x86_64 ;;
  arm64) arch=arm64 kernel=cloud-arm64 tools=aarch64 ;;
  mipsel) arch=mipsel kernel=4kc-malta tools=mipsel ;;
  *)
    echo "image.sh: which one: x86_64, arm64, mipsel" >&2
    exit 2
    ;;
esac
out=$root/out/qemu/$1

programs=(bin/busybox bin/ip sbin/tc usr/sbin/nft usr/sbin/conntrack bin/signify-openbsd)
packages=(busybox-static iproute2 nftables conntrack signify-openbsd)
# With what they need; the kernel asks for the rest by modprobe, as anywhere.
modules=(
  crc32c_generic
  virtio_pci virtio_net virtio_console
  nf_tables nft_ct nft_objref nft_queue nfnetlink_queue nft_chain_nat nft_masq nft_log nft_limit
  nft_reject_inet nft_reject_bridge nft_fib_inet nft_flow_offload nf_flow_table_inet
  nf_conntrack nf_conntrack_netlink
  bridge nf_conntrack_bridge nft_meta_bridge
  sch_netem sch_fq_codel sch_ingress cls_matchall act_mirred ifb
)
# In the image, but loaded only by who wants them: it changes what bridges do.
spare=(br_netfilter)

stamp=$out/.stamp
key=$(find "$0" "$here/guest" "$standins" "$realtools" "$debian" -type f | sort | xargs cat | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" = "$key" ]; then
  exit 0
fi
mkdir -p "$out"
rm -f "$stamp"
echo "image: making $1"
"$realtools" "$tools"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
image=$work/image

# Of everything these packages depend on, only the libraries that are linked.
"$debian" apt "$arch" apt-get install -qq -y --no-install-recommends --download-only \
  "${packages[@]}" >/dev/null
for package in "$root/out/cache/apt/$arch/archives"/*.deb; do
  dpkg-deb -x "$package" "$work/debian"
done

take() {
  local file=$1 needed library found
  [ ! -e "$image/$file" ] || return 0
  install -D "$work/debian/$file" "$image/$file"
  needed=$(readelf -ldW "$image/$file" 2>/dev/null |
    sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p; s/.*interpreter: \(.*\)\]/\1/p')
  for library in $needed; do
    found=$(cd "$work/debian" && find . \( -path "./${library#/}" -o -name "$library" \) -print -quit)
    [ -n "$found" ] || {
      echo "image.sh: nothing brings $library" >&2
      exit 1
    }
    take "${found#./}"
  done
}
for program in "${programs[@]}"; do
  take "$program"
done

image_package=$("$debian" apt "$arch" apt-cache depends "linux-image-$kernel" |
  sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
"$debian" unpack "$arch" "$work/kernel" "$image_package"
version=$(basename "$work/kernel"/lib/modules/*)
depmod -b "$work/kernel" "$version"
modprobe -C /dev/null -d "$work/kernel" -S "$version" -aD "${modules[@]}" "${spare[@]}" |
  awk '$1 == "insmod" { print $2 }' | sort -u | while read -r module; do
  install -D -m 644 "$module" "$image/${module#"$work/kernel/"}"
done
cp "$work/kernel/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} \
  "$image/lib/modules/$version/"
depmod -b "$image" "$version"

mkdir -p "$image"/{dev,proc,sys,tmp,root,mnt,overlay,etc/{config,init.d,rc.d,uci-defaults},lib/functions}
ln -s ../bin/ip "$image/sbin/ip"
mkdir -p "$image"/usr/{bin,sbin,lib,share/libubox,share/nftables.d}
ln -s tmp "$image/var"
ln -s busybox "$image/bin/sh"
printf '%s\n' "${modules[@]}" >"$image/etc/modules"
install -m 755 "$here"/guest/{rcS,agent} "$image/usr/lib/"
install -m 644 "$here"/guest/{inittab,passwd,group,protocols} "$image/etc/"
install -m 755 "$here/guest/firewall" "$image/etc/init.d/firewall"
install -m 644 "$here/guest/firewall.uci" "$image/etc/config/firewall"
cp -R "$standins"/{etc,lib,sbin} "$image/"
cat "$here/guest/packages.sh" >>"$image/lib/functions.sh"
install -m 755 "$here"/guest/{opkg,service} "$image/bin/"
install -m 755 "$here/guest/opkg-key" "$image/usr/sbin/opkg-key"
ln -s /bin/busybox "$image/init"
install -m 755 "$root/out/realtools/$tools/bin/uci" "$image/sbin/uci"
install -m 755 "$root/out/realtools/$tools/bin/jshn" "$image/usr/bin/jshn"
install -m 644 "$root/out/realtools/$tools/share/libubox/jshn.sh" "$image/usr/share/libubox/"

# Not compressed: QEMU copies faster than a guest without hardware help unpacks.
(cd "$image" && find . | cpio -o -H newc --quiet -R 0:0) >"$out/initrd.cpio"
cp "$work/kernel/boot/vmlinuz-$version" "$out/kernel"
printf '%s\n' "$key" >"$stamp"
