#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# build.sh ARCHITECTURE: builds the daemon as one static file,
# target/portable/TRIPLE/pemi, and prints that name. With REPLAY=1 it has the command
# replay, which is for another machine than a router with 8 MB of flash.
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
# An object comes before what libraries have.
rustflags+=" -Clink-arg=$work/lib/$triple/libc.o"

# zig calls this one by another name.
[[ $1 != powerpc_* ]] || export CARGO_ZIGBUILD_PYTHON_PATH=$PWD/package/portable/zig.sh

features=(--no-default-features)
[ "${REPLAY:-}" != 1 ] || features=()

# A relative path, and paths trimmed by the compiler: what is built must not depend
# on the folder in which it is.
RUSTFLAGS="$rustflags -Lnative=$work/lib/$triple" \
  CARGO_PROFILE_OPENWRT_TRIM_PATHS=all \
  PATH="$PWD/.venv/bin:$PATH" \
  cargo "+$nightly" zigbuild --quiet --locked --package pemi --profile openwrt \
  "${features[@]}" \
  --target "$triple" --target-dir "$work" -Z trim-paths \
  -Z build-std=std,panic_abort -Z build-std-features=optimize_for_size >&2

# lld keeps sections that only debuggers want: 75 KB on MIPS.
sysroot=$(rustc "+$nightly" --print sysroot)
objcopy=("$sysroot"/lib/rustlib/*/bin/rust-objcopy)
LD_LIBRARY_PATH=$sysroot/lib "${objcopy[0]}" --strip-all \
  --remove-section=.pdr --remove-section=.mdebug.abi32 --remove-section=.comment \
  "$work/$triple/openwrt/pemi" "$work/$triple/pemi"
printf '%s\n' "$work/$triple/pemi"
