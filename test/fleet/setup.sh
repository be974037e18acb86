#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What the tests of this folder need: Lua as routers have it, and Debian's Prometheus in
# out/fleet, which is not installed, because its package would start a service on this machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
test/install.sh lua5.1 lua-socket lua-cjson debian-archive-keyring busybox-static
[ -x out/fleet/usr/bin/promtool ] || test/package/debian.sh unpack "$(dpkg --print-architecture)" out/fleet prometheus
