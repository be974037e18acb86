#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# install.sh PACKAGE...: installs those of the Debian packages that are missing. Quick
# when none is.
set -euo pipefail

missing=()
for package in "$@"; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
    missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}
command -v apt-get >/dev/null || fail "this knows only apt; install by hand: ${missing[*]}"
[ "$(id -u)" -eq 0 ] || fail "these are missing; run: sudo apt-get install ${missing[*]}"
printf 'setup: installing %s\n' "${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
