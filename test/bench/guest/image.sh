#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes what the counting guest boots from: out/bench/ARCH/kernel and initrd.cpio, from
# Debian's kernel and programs, the traffic of this folder and the daemon as packages have it.
#   image.sh mipsel|x86_64
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
debian=$root/test/package/debian.sh

case ${1:-} in
  x86_64) arch=amd64 kernel=cloud-amd64 package=x86_64 ;;
  mipsel) arch=mipsel kernel=4kc-malta package=mipsel_24kc ;;
  *)
    echo "image.sh: which one: mipsel, x86_64" >&2
    exit 2
    ;;
esac
out=$root/out/bench/$1

packages=(busybox-static iproute2 nftables ethtool util-linux)
programs=(bin/busybox bin/ip usr/sbin/nft sbin/ethtool usr/bin/chrt)
modules=(
  crc32c_generic veth nf_tables nft_ct nft_queue nfnetlink_queue nft_objref
  nft_flow_offload nf_flow_table_inet nf_conntrack nft_chain_nat nft_masq nft_quota
)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
mkdir -p "$out"
# shellcheck source=package/portable/targets.sh
. package/portable/targets.sh
select_target "$package"
package/portable/setup.sh >&2
daemon=$(package/portable/build.sh "$package")
# The traffic in the same way, so that the same compiler has made both ends of it.
RUSTFLAGS="$rustflags" PATH="$root/.venv/bin:$PATH" \
  cargo "+$nightly" zigbuild --quiet --locked --manifest-path test/Cargo.toml --release \
  -p pemi-bench --bin traffic --bin latency --bin accept-all \
  --target "$triple" --target-dir target/portable/bench -Z build-std=std,panic_abort >&2
built=("$daemon" "$daemon-tools" target/portable/bench/"$triple"/release/{traffic,latency,accept-all})

take() {
  local file=$1 needed library found
  [ ! -e "$work/image/$file" ] || return 0
  install -D "$work/debian/$file" "$work/image/$file"
  needed=$(readelf -ldW "$work/image/$file" 2>/dev/null |
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

# Debian's part, again only when what it is made of has changed.
make_base() {
  local file version image_package
  "$debian" apt "$arch" apt-get install -qq -y --no-install-recommends --download-only \
    "${packages[@]}" >/dev/null
  for file in "$root/out/cache/apt/$arch/archives"/*.deb; do
    dpkg-deb -x "$file" "$work/debian"
  done
  for file in "${programs[@]}"; do
    take "$file"
  done
  image_package=$("$debian" apt "$arch" apt-cache depends "linux-image-$kernel" |
    sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
  "$debian" unpack "$arch" "$work/kernel" "$image_package"
  version=$(basename "$work/kernel"/lib/modules/*)
  depmod -b "$work/kernel" "$version"
  modprobe -C /dev/null -d "$work/kernel" -S "$version" -aD "${modules[@]}" |
    awk '$1 == "insmod" { print $2 }' | sort -u | while read -r file; do
    install -D -m 644 "$file" "$work/image/${file#"$work/kernel/"}"
  done
  cp "$work/kernel/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} \
    "$work/image/lib/modules/$version/"
  depmod -b "$work/image" "$version"
  mkdir -p "$work/image"/{dev,proc,sys,tmp,run,etc,usr/bin}
  ln -s busybox "$work/image/bin/sh"
  # nft wants names like `tcp`.
  printf 'ip\t0\nicmp\t1\ntcp\t6\nudp\t17\nipv6-icmp\t58\n' >"$work/image/etc/protocols"
  printf '%s\n' "${modules[@]}" >"$work/image/etc/modules"
  pack "$work/image" "$out/base.cpio"
  cp "$work/kernel/boot/vmlinuz-$version" "$out/kernel"
}

# Not compressed: QEMU copies faster than a guest without hardware help unpacks.
pack() {
  (cd "$1" && find . | cpio -o -H newc --quiet -R 0:0) >"$2"
}

stamp=$out/.stamp
key=$(cat "$0" "$debian" | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$key" ]; then
  rm -f "$stamp"
  echo "image: making $1" >&2
  make_base
  printf '%s\n' "$key" >"$stamp"
fi
mkdir -p "$work/own/usr/bin"
install -m 755 "$here/init" "$work/own/init"
install -m 755 "${built[@]}" "$work/own/usr/bin/"
pack "$work/own" "$work/own.cpio"
# The kernel unpacks archives one after the other.
cat "$out/base.cpio" "$work/own.cpio" >"$out/initrd.cpio"
