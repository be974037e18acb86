#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what the router images and the machines that run them need, on Debian
# 12 or Ubuntu 24.04. Does nothing, quickly, when everything is there.
set -euo pipefail

packages=(
  qemu-system-x86 qemu-system-arm qemu-system-mips
  binutils cpio kmod debian-archive-keyring
  # for test/package/realtools.sh
  python3-venv dpkg-dev
)

"$(dirname "$0")/../install.sh" "${packages[@]}"
