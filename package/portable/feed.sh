#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# feed.sh KEYS OUT [ARCHITECTURE...]: builds the packages of these architectures, or of all,
# as .ipk and .apk, and lays them out as a signed feed.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=package/portable/targets.sh
. package/portable/targets.sh
keys=${1:?KEYS} out=${2:?OUT}
shift 2
[ $# -gt 0 ] || set -- "${architectures[@]}"
if [ ! -e "$keys/pemi.sec" ] || [ ! -e "$keys/pemi.key" ]; then
  printf 'feed: no keys in %s; make them once: make feed-key\n' "$keys" >&2
  exit 2
fi
test/install.sh signify-openbsd openssl

for arch in "$@"; do
  for kind in ipk apk; do
    package/portable/make.sh "$kind" "$arch"
  done
done
for kind in ipk apk; do
  package/portable/make.sh "$kind" luci
done
exec /usr/bin/python3 package/portable/feed.py out/packages "$keys" "$out" "$@"
