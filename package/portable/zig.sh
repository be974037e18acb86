#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# zig.sh -m ziglang ARGUMENT...: zig, as cargo-zigbuild calls it by the name of Python. Of 32-bit
# PowerPC cargo-zigbuild 0.24 knows one target with musl, and zig has two other ones, by whether
# numbers with a point are handed over in registers of their own.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../../.venv/bin/python" "${@/#powerpc-linux-musl/powerpc-linux-musleabi}"
