#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes what the guest boots from: out/wifi/KERNEL/kernel, base.cpio (Debian's modules and
# programs, the guest's scripts) and programs.cpio (what this tree builds).
#   image.sh 6.1|6.12
# Quick when it is there and nothing it is made of has changed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
debian=$root/test/package/debian.sh

# Modules of one kernel are parts of the next one's core.
case ${1:-} in
  6.1) suite='' own=(nft_objref) ;;
  6.12) suite=bookworm-backports own=() ;;
  *)
    echo "image.sh: which kernel: 6.1, 6.12" >&2
    exit 2
    ;;
esac
out=$root/out/wifi/$1

packages=(
  busybox-static iproute2 nftables iw hostapd wpasupplicant util-linux nginx curl openssl
  python3-minimal libpython3.11-stdlib
)
programs=(
  bin/busybox bin/ip sbin/tc usr/sbin/nft sbin/iw
  usr/bin/chrt usr/sbin/hostapd usr/sbin/hostapd_cli sbin/wpa_supplicant sbin/wpa_cli
  usr/sbin/nginx usr/bin/curl usr/bin/openssl usr/bin/python3.11
)
# Of Python's own modules what calling a library needs.
python=usr/lib/python3.11
python_modules=(ctypes json lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so)
# With what they need. Ciphers and the like the kernel asks for by itself, through modprobe.
modules=(
  mac80211_hwsim veth bridge
  sch_netem sch_fq_codel
  nf_tables nft_ct nft_queue nfnetlink_queue nft_limit nft_log
  nft_reject_inet nft_fib_inet nft_meta_bridge nft_flow_offload nf_flow_table_inet
  nft_masq nft_chain_nat nft_quota
  ccm ctr cmac gcm aes_generic ghash_generic
)
# Of this tree. Which programs make traffic is for run.py to say; all are small once stripped.
built=(
  target/release/pemi
  test/target/release/medium test/target/release/stream
  test/target/release/goodput test/target/release/upload
  test/target/release/rtc test/target/release/media
  test/target/release/goodput-quicgo test/target/release/rtc-quicgo
  test/target/release/goodput-s2n test/target/release/http-quicgo
)
# HTTP/3 with curl: the script that calls its library, and the library if make setup found one.
curl=test/mininet/testbed/loads/curl.py
libcurl=$(compgen -G "$root/.venv/lib/python3*/site-packages/curl_cffi/_wrapper.abi3.so" | head -n 1 || true)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

known=$(ldconfig -p)

# take IMAGE FILE AS: a file into the image, and the libraries it is linked with: this
# machine's where it has them, since ours were built against these, else the packages'.
take() {
  local image=$1 file=$2 as=$3 needed library found
  [ ! -e "$image/$as" ] || return 0
  install -D "$file" "$image/$as"
  needed=$(readelf -ldW "$file" 2>/dev/null |
    sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p; s/.*interpreter: \(.*\)\]/\1/p')
  for library in $needed; do
    case $library in
      # A dynamic linker is looked for where the program says, nowhere else.
      /*)
        take "$image" "$library" "${library#/}"
        continue
        ;;
    esac
    found=$(awk -v name="$library" '$1 == name && /x86-64/ { print $NF; exit }' <<<"$known")
    [ -n "$found" ] || found=$(find "$unpacked" -name "$library" -print -quit 2>/dev/null)
    [ -n "$found" ] || {
      echo "image.sh: nothing brings $library, which $file needs" >&2
      exit 1
    }
    take "$image" "$found" "lib/$library"
  done
}

# Not compressed: QEMU copies faster than a guest without hardware help unpacks.
pack() {
  (cd "$1" && find . | LC_ALL=C sort | cpio -o -H newc --quiet -R 0:0 --reproducible) >"$2.new"
  mv "$2.new" "$2"
}

make_base() {
  local image=$work/base version image_package package file
  unpacked=$work/debian
  # Of everything these packages depend on, only the libraries that are linked.
  "$debian" apt amd64 apt-get install -qq -y --no-install-recommends --download-only \
    "${packages[@]}" >/dev/null
  for package in "$root/out/cache/apt/amd64/archives"/*.deb; do
    dpkg-deb -x "$package" "$unpacked"
  done
  for file in "${programs[@]}"; do
    take "$image" "$unpacked/$file" "$file"
  done
  (cd "$unpacked" && dpkg-deb --fsys-tarfile \
    "$root/out/cache/apt/amd64/archives"/libpython3.11-minimal_*.deb | tar -x -C "$image" "./$python")
  for file in "${python_modules[@]}"; do
    if [ -d "$unpacked/$python/$file" ]; then
      cp -r "$unpacked/$python/$file" "$image/$python/"
    else
      take "$image" "$unpacked/$python/$file" "$python/$file"
    fi
  done

  image_package=$(DEBIAN_SUITE=$suite "$debian" apt amd64 apt-cache depends linux-image-amd64 |
    sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
  DEBIAN_SUITE=$suite "$debian" unpack amd64 "$work/kernel" "$image_package"
  version=$(basename "$work/kernel"/lib/modules/*)
  depmod -b "$work/kernel" "$version"
  modprobe -C /dev/null -d "$work/kernel" -S "$version" -aD "${modules[@]}" "${own[@]}" |
    awk '$1 == "insmod" { print $2 }' | sort -u | while read -r file; do
    install -D -m 644 "$file" "$image/${file#"$work/kernel/"}"
  done
  # busybox' modprobe reads no xz.
  find "$image/lib/modules" -name '*.ko.xz' -exec xz -d {} +
  cp "$work/kernel/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} \
    "$image/lib/modules/$version/"
  depmod -b "$image" "$version"

  mkdir -p "$image"/{dev,proc,sys,tmp,root,run,etc,usr/bin,usr/sbin,usr/lib/wifi,var}
  ln -s busybox "$image/bin/sh"
  ln -s ../run "$image/var/run"
  install -m 755 "$here/guest/init" "$image/init"
  install -m 644 "$here"/guest/*.sh "$image/usr/lib/wifi/"
  # nginx asks for nobody, also where it does not become that.
  cat >"$image/etc/passwd" <<-END
	root:x:0:0:root:/root:/bin/sh
	pemi:*:5443:5443:pemi:/var/run/pemi:/bin/false
	nobody:*:65534:65534:nobody:/nonexistent:/bin/false
END
  printf 'root:x:0:\npemi:x:5443:\nnogroup:x:65534:\n' >"$image/etc/group"
  # nft wants names like `tcp`.
  printf 'ip\t0\nicmp\t1\ntcp\t6\nudp\t17\nipv6-icmp\t58\n' >"$image/etc/protocols"
  pack "$image" "$out/base.cpio"
  unpack_kernel "$work/kernel/boot/vmlinuz-$version" "$out/kernel"
}

# unpack_kernel BZIMAGE ELF: a guest without hardware help takes longer to unpack its kernel
# than to boot. Where it is inside the file the boot protocol says.
unpack_kernel() {
  local sectors offset length unpack
  number() { od -An -t "u$2" -j "$3" -N "$2" "$1" | tr -d ' '; }
  sectors=$(number "$1" 1 $((0x1f1)))
  offset=$(number "$1" 4 $((0x248)))
  length=$(number "$1" 4 $((0x24c)))
  offset=$(((sectors + 1) * 512 + offset))
  # By what the first byte says; later kernels are packed otherwise.
  case $(number "$1" 1 "$offset") in
    253) unpack=xz ;;
    40) unpack=zstd ;;
    *)
      echo "image.sh: it is not known how $1 is packed" >&2
      exit 1
      ;;
  esac
  # The length of the unpacked kernel follows its end, in four bytes.
  dd if="$1" iflag=skip_bytes,count_bytes skip="$offset" count=$((length - 4)) bs=1M \
    status=none | "$unpack" -dc >"$2"
}

make_programs() {
  local image=$work/programs file
  unpacked=/nonexistent
  for file in "${built[@]}"; do
    take "$image" "$root/$file" "usr/bin/$(basename "$file")"
    strip "$image/usr/bin/$(basename "$file")"
  done
  install -D -m 644 "$root/$curl" "$image/usr/lib/wifi/curl.py"
  if [ -n "$libcurl" ]; then
    take "$image" "$libcurl" "usr/lib/wifi/$(basename "$libcurl")"
    strip "$image/usr/lib/wifi/$(basename "$libcurl")"
  fi
  # As the package installs them.
  mkdir -p "$image/usr/sbin"
  mv "$image/usr/bin/pemi" "$image/usr/sbin/pemi"
  (cd "$root/files" && find . -type f | cpio -pdm --quiet "$image")
  pack "$image" "$out/programs.cpio"
}

# stale FILE KEY...: whether what FILE was made of is not what these words say.
stale() {
  local file=$1
  shift
  [ "$(cat "$file.of" 2>/dev/null)" != "$*" ] || [ ! -e "$file" ]
}

mkdir -p "$out"
key=$(cat "$here/image.sh" "$debian" "$here"/guest/* | sha256sum)
if stale "$out/base.cpio" "$key"; then
  echo "image: making the guest with Linux $1" >&2
  make_base
  printf '%s' "$key" >"$out/base.cpio.of"
fi
key=$(cd "$root" && { cat "$here/image.sh" "${built[@]}" "$curl" ${libcurl:+"$libcurl"}; find files -type f | sort | xargs cat; } | sha256sum)
if stale "$out/programs.cpio" "$key"; then
  make_programs
  printf '%s' "$key" >"$out/programs.cpio.of"
fi
