#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# sdk.sh SDK: builds the packages with an OpenWrt SDK, given as its folder, its
# archive or the archive's URL, and copies them into out/packages/sdk.
set -euo pipefail
# OpenWrt's makefiles have a variable of that name themselves.
unset SDK MAKEFLAGS MAKEOVERRIDES MAKELEVEL
root=$(cd "$(dirname "$0")/.." && pwd)
sdk=${1:-}

fail() {
  printf 'sdk: %s\n' "$*" >&2
  exit "${status:-1}"
}
status=2
[ -n "$sdk" ] || fail "which SDK? make sdk SDK=folder, archive or URL of an openwrt-sdk-*.tar.*"
status=1

work=$root/target/sdk
case $sdk in
  http://* | https://*)
    mkdir -p "$work"
    archive=$work/${sdk##*/}
    [ -e "$archive" ] || {
      curl --fail --location --output "$archive.part" "$sdk" && mv "$archive.part" "$archive"
    } || fail "cannot get $sdk"
    sdk=$archive
    ;;
esac
if [ -f "$sdk" ]; then
  folder=$work/$(basename "$sdk" | sed 's/\.tar\..*//')
  if [ ! -e "$folder/feeds.conf.default" ]; then
    mkdir -p "$folder"
    # Some are compressed with zstd, which tar calls as a program.
    tar -x --strip-components=1 -C "$folder" -f "$sdk" || fail "cannot unpack $sdk"
  fi
  sdk=$folder
fi
cd "$sdk" 2>/dev/null || fail "no such SDK: $sdk"
[ -x scripts/feeds ] || fail "$sdk is not an SDK"

if ! grep -qs '^src-link pemi ' feeds.conf; then
  [ -e feeds.conf ] || cp feeds.conf.default feeds.conf
  printf 'src-link pemi %s\n' "$root" >>feeds.conf
fi
packages=() targets=()
for folder in "$root"/package/*/ "$root"/luci-app-*/; do
  if grep -qs 'call BuildPackage\|include.*/luci\.mk' "$folder/Makefile"; then
    package=$(basename "$folder")
    packages+=("$package")
    targets+=("package/$package/compile")
  fi
done
scripts/feeds update -a
scripts/feeds install "${packages[@]}"
for package in "${packages[@]}"; do
  grep -qsx "CONFIG_PACKAGE_$package=[my]" .config ||
    printf 'CONFIG_PACKAGE_%s=m\n' "$package" >>.config
done
make defconfig
make -j"$(nproc)" "${targets[@]}" V=s

mkdir -p "$root/out/packages/sdk"
find bin/packages -path '*/pemi/*' \( -name '*.ipk' -o -name '*.apk' \) \
  -exec cp -v {} "$root/out/packages/sdk" \;
