#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs Snakemake into out/snakemake. Quick when it is there.
set -euo pipefail
cd "$(dirname "$0")/../.."
wheel=snakemake==9.27.1
[ "$(cat out/snakemake/installed 2>/dev/null)" != "$wheel" ] || exit 0
test/install.sh python3 python3-venv
rm -rf out/snakemake
mkdir -p out
/usr/bin/python3 -m venv out/snakemake
out/snakemake/bin/pip install --quiet --disable-pip-version-check "$wheel"
printf '%s\n' "$wheel" >out/snakemake/installed
