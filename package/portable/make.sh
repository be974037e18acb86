#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# make.sh {ipk|apk} {ARCHITECTURE|luci|collector}: builds a package into out/packages, or what is the
# same for all: the LuCI app and its translations, or the collector for Prometheus.
set -euo pipefail
cd "$(dirname "$0")/../.."
pack=(/usr/bin/python3 package/portable/pack.py "$1")
case ${2:-} in luci | collector) exec "${pack[@]}" "$2" out/packages ;; esac
# shellcheck source=package/portable/targets.sh
. package/portable/targets.sh
select_target "${2:-}"
package/portable/setup.sh
binary=$(package/portable/build.sh "$2")
exec "${pack[@]}" "$2" "$binary" out/packages
