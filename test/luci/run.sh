#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The tests of the LuCI app; those in real LuCI as well if LUCI_ROOT and OPENWRT_ROOTFS
# (see rig.sh) are set.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
node=$top/out/node/node_modules

if [ -d "$node" ]; then
  NODE_LIBRARIES=$node "$node/.bin/eslint" --config luci-app-pemi/eslint.config.mjs luci-app-pemi
else
  echo "test-luci: SKIPPED eslint: it is not installed"
fi
/usr/bin/python3 -m pytest test/luci --ignore test/luci/test_real.py

skip() {
  echo "test-luci: SKIPPED real LuCI: $1"
  exit 0
}
[ -n "${LUCI_ROOT:-}" ] || skip "LUCI_ROOT is not set"
[ -n "${OPENWRT_ROOTFS:-}" ] || skip "OPENWRT_ROOTFS is not set (see test/luci/README.md)"
[ "$(id -u)" -eq 0 ] || skip "root is needed"
for built in "${PEMI_APPS:-test/target/release}/goodput" "${PEMI:-target/release/pemi}"; do
  [ -x "$built" ] || skip "$built is not there (make build)"
done
work=$(mktemp -d)
init=$(test/luci/rig.sh "$work/rig") || { rm -rf "$work" && exit 1; }
# The first process of a namespace is deaf to milder signals.
trap 'kill -KILL "$init"; rm -rf "$work"' EXIT
RIG=$init nsenter -t "$init" -n /usr/bin/python3 -m pytest -s test/luci/test_real.py
