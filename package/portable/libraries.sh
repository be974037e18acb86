#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# libraries.sh ARCHITECTURE: makes libmnl.a and libnetfilter_queue.a in
# target/portable/lib/TRIPLE, from the sources of Debian 12, and libc.o from libc.c.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=package/portable/targets.sh
. package/portable/targets.sh
select_target "${1:?ARCHITECTURE}"

# path below the pool, SHA-256 as in Debian's signed .dsc. libnfnetlink is there
# only for its headers, which those of libnetfilter_queue include.
sources=(
  "libm/libmnl/libmnl_1.0.4.orig.tar.bz2
   171f89699f286a5854b72b91d06e8f8e3683064c5901fb09d954a9ab6f551f81"
  "libn/libnetfilter-queue/libnetfilter-queue_1.0.5.orig.tar.bz2
   f9ff3c11305d6e03d81405957bdc11aea18e0d315c3e3f48da53a24ba251b9f5"
  "libn/libnfnetlink/libnfnetlink_1.0.2.orig.tar.bz2
   b064c7c3d426efb4786e60a8e6859b82ee2f2c5e49ffeea640cfe4fe33cbc376"
)
# The same files; not every mirror has every one.
pools=(
  http://deb.debian.org/debian/pool/main
  http://archive.ubuntu.com/ubuntu/pool/main
  http://archive.ubuntu.com/ubuntu/pool/universe
)

work=target/portable
src=$work/src
lib=$work/lib/$triple

fetch() { # PATH SHA256
  local file=$work/download/${1##*/} pool
  mkdir -p "$work/download"
  for pool in "${pools[@]}"; do
    sha256sum --check --status <<<"$2  $file" 2>/dev/null && return
    curl --silent --fail --location --retry 2 --output "$file" "$pool/$1" || rm -f "$file"
  done
  sha256sum --check --status <<<"$2  $file" 2>/dev/null || {
    printf 'cannot get %s with the right checksum; put it into %s by hand\n' \
      "${1##*/}" "$work/download" >&2
    exit 1
  }
}

if [ ! -e "$src/done" ]; then
  rm -rf "$src"
  mkdir -p "$src"
  for source in "${sources[@]}"; do
    # shellcheck disable=SC2086  # two words
    fetch $source
    path=${source%%[[:space:]]*}
    tar -xf "$work/download/${path##*/}" -C "$src"
  done
  # What ./configure would write; the few settings that matter are given below.
  touch "$src/config.h" "$src/done"
fi

stamp=$lib/done
key=$(cat "$0" package/portable/{targets.sh,libc.c} | sha256sum)
[ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && exit 0

# As the daemon is linked, see targets.sh.
pic=(-fPIC)
[[ $1 != mips* ]] || pic=(-fno-pic -fno-pie)

zig() { .venv/bin/python -m ziglang "$@"; }
compile() { # LIBRARY SOURCE...
  local library=$1 objects=() file object
  shift
  for file in "$@"; do
    object=$lib/${library%.a}-$(basename "$file" .c).o
    zig cc -target "$zig_target" -mcpu="$zig_cpu" -Os -g0 "${pic[@]}" -ffunction-sections \
      -fvisibility=hidden -DHAVE_VISIBILITY_HIDDEN -I"$src" \
      -I"$src/libmnl-1.0.4/include" -I"$src/libnetfilter_queue-1.0.5/include" \
      -I"$src/libnfnetlink-1.0.2/include" -c "$file" -o "$object"
    objects+=("$object")
  done
  rm -f "$lib/$library"
  zig ar rcsD "$lib/$library" "${objects[@]}"
}

mkdir -p "$lib"
zig cc -target "$zig_target" -mcpu="$zig_cpu" -O2 -g0 "${pic[@]}" -fno-builtin -fomit-frame-pointer \
  -ffunction-sections -Wall -Werror -c package/portable/libc.c -o "$lib/libc.o"
compile libmnl.a "$src"/libmnl-1.0.4/src/{attr,callback,nlmsg,socket}.c
# The rest of libnetfilter_queue is its old interface and helpers for packets.
compile libnetfilter_queue.a "$src/libnetfilter_queue-1.0.5/src/nlmsg.c"
printf '%s\n' "$key" >"$stamp"
