#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# make.sh {ipk|apk} {ARCHITECTURE|luci}: builds a package into out/packages, or the LuCI app
# and its translations, which are the same for all.
set -euo pipefail
cd "$(dirname "$0")/../.."
pack=(/usr/bin/python3 package/portable/pack.py "$1")
[ "${2:-}" != luci ] || exec "${pack[@]}" luci out/packages
# shellcheck source=package/portable/targets.sh
. package/portable/targets.sh
select_target "${2:-}"
package/portable/setup.sh
binary=$(package/portable/build.sh "$2")
exec "${pack[@]}" "$2" "$binary" out/packages
