#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what making and running the guest needs, on Debian 12 or Ubuntu 24.04. Does
# nothing, quickly, when everything is there. What runs inside the guest is not installed:
# image.sh unpacks it.
set -euo pipefail

packages=(
  qemu-system-x86
  binutils cpio kmod xz-utils zstd debian-archive-keyring
)

"$(dirname "$0")/../install.sh" "${packages[@]}"
