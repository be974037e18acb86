#!/usr/bin/env bash
# Installs what the router images and the machines that run them need, on Debian
# 12 or Ubuntu 24.04. Does nothing, quickly, when everything is there.
set -euo pipefail

packages=(
  qemu-system-x86 qemu-system-arm qemu-system-mips
  binutils cpio kmod debian-archive-keyring
  # for test/package/realtools.sh
  python3-venv dpkg-dev
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
    missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
  echo "setup: not everything is installed yet; run as root: $0" >&2
  exit 1
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
