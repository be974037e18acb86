#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# reproducible.sh ARCHITECTURE: builds the .ipk here and in a copy of the sources in
# another folder, and compares the two.
set -euo pipefail
cd "$(dirname "$0")/../.."
arch=${1:-}
package/portable/make.sh ipk "$arch"

copy=$(mktemp -d)/elsewhere
trap 'rm -rf "$(dirname "$copy")"' EXIT
mkdir -p "$copy/target/portable"
git ls-files -z --cached --others --exclude-standard |
  tar -c --ignore-failed-read --null --files-from - | tar -x -C "$copy"
# The tools, and the archives that were checked by their sums; everything else is new.
ln -s "$PWD/.venv" "$copy/.venv"
ln -s "$PWD/target/portable/download" "$copy/target/portable/download"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
"$copy/package/portable/make.sh" ipk "$arch"

packages=("$copy"/out/packages/*_"$arch".ipk)
for package in "${packages[@]#"$copy"/}"; do
  cmp "$package" "$copy/$package"
  sha256sum "$package"
done
