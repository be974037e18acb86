#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what building the portable packages needs: the compilers, and what checks
# their results. Does nothing, quickly, when everything is there.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=package/portable/targets.sh
. package/portable/targets.sh

# readelf looks into the results, qemu runs them
packages=(ca-certificates curl bzip2 binutils qemu-user-static python3 python3-venv python3-pytest)
wheels=(ziglang==0.14.1 cargo-zigbuild==0.24.0)

stamp=.venv/package-setup-done
key=$(cat "$0" package/portable/targets.sh | sha256sum)

say() { printf 'setup: %s\n' "$*"; }
fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}
compiler_is_there() {
  [ -d "$(rustc "+$nightly" --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library" ]
}

if [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && compiler_is_there; then
  exit 0
fi

test/install.sh "${packages[@]}"

command -v rustup >/dev/null ||
  fail "rustup is needed, for the compiler $nightly; see https://rustup.rs"
if ! compiler_is_there; then
  say "installing $nightly"
  rustup toolchain install "$nightly" --profile minimal --component rust-src --no-self-update ||
    fail "could not get $nightly"
fi

say "installing ${wheels[*]} into .venv"
[ -x .venv/bin/pip ] || /usr/bin/python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check "${wheels[@]}"

printf '%s\n' "$key" >"$stamp"
say "done"
