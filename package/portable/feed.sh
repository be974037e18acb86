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

# A name that is not known is better told before the others are built.
for arch in "$@"; do
  select_target "$arch"
done
package/portable/setup.sh
python=/usr/bin/python3
for arch in "$@"; do
  binary=$(package/portable/build.sh "$arch")
  for kind in ipk apk; do
    "$python" package/portable/pack.py "$kind" "$arch" "$binary" out/packages
  done
done
for kind in ipk apk; do
  for word in luci collector; do
    "$python" package/portable/pack.py "$kind" "$word" out/packages
  done
done
exec "$python" package/portable/feed.py out/packages "$keys" "$out" "$@"
