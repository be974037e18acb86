#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# build.sh ARCHITECTURE: builds the daemon and its tools as one static file each,
# target/portable/TRIPLE/pemi and pemi-tools beside it, and prints the daemon's name.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=package/portable/targets.sh
. package/portable/targets.sh
select_target "${1:?ARCHITECTURE}"
package/portable/libraries.sh "$1" >&2
work=target/portable

# There code is largest and flash smallest: a panic ends the daemon without a word, and procd
# starts it again. With words it would be 41 KB more. What only such words and tests print
# of values ({:?}) is 23 KB.
[[ $1 != mips* ]] || rustflags+=" -Zunstable-options -Cpanic=immediate-abort -Zfmt-debug=none"
# Others' code and the standard library are 4 KB less with it on MIPS, and 35 more on x86-64. What looks up
# the flow of each packet is no place for it.
levels=()
if [[ $1 == mips* ]]; then
  levels+=(--config 'profile.openwrt.package."*".opt-level="z"')
  for package in hashbrown siphasher arrayvec; do
    levels+=(--config "profile.openwrt.package.$package.opt-level=\"s\"")
  done
fi
# An object comes before what libraries have.
rustflags+=" -Clink-arg=$work/lib/$triple/libc.o"

# zig calls this one by another name.
[[ $1 != powerpc_* ]] || export CARGO_ZIGBUILD_PYTHON_PATH=$PWD/package/portable/zig.sh

# A relative path, and paths trimmed by the compiler: what is built must not depend
# on the folder in which it is.
RUSTFLAGS="$rustflags -Lnative=$work/lib/$triple" \
  CARGO_PROFILE_OPENWRT_TRIM_PATHS=all \
  PATH="$PWD/.venv/bin:$PATH" \
  cargo "+$nightly" zigbuild --quiet --locked --package pemi --profile openwrt "${levels[@]}" \
  --target "$triple" --target-dir "$work" -Z trim-paths \
  -Z build-std=std,panic_abort -Z build-std-features=optimize_for_size >&2

# lld keeps sections that only debuggers want: 75 KB on MIPS.
sysroot=$(rustc "+$nightly" --print sysroot)
objcopy=("$sysroot"/lib/rustlib/*/bin/rust-objcopy)
for program in pemi pemi-tools; do
  LD_LIBRARY_PATH=$sysroot/lib "${objcopy[0]}" --strip-all \
    --remove-section=.pdr --remove-section=.mdebug.abi32 --remove-section=.comment \
    "$work/$triple/openwrt/$program" "$work/$triple/$program"
done
printf '%s\n' "$work/$triple/pemi"
