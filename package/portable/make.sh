#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# make.sh {ipk|apk} ARCHITECTURE: builds a package into out/packages.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=package/portable/targets.sh
. package/portable/targets.sh
select_target "${2:-}"
package/portable/setup.sh
binary=$(package/portable/build.sh "$2")
exec /usr/bin/python3 package/portable/pack.py "$1" "$2" "$binary" out/packages
