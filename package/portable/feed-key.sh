#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# feed-key.sh FOLDER: makes the two keys that a feed is signed with, once. Whoever has the
# secret ones can install anything on the routers that trust them: they have no password,
# only their owner can read them, and git ignores the folder that `make feed-key` takes.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:?FOLDER}
test/install.sh signify-openbsd openssl

# Routers that trust a key would refuse what another has signed.
complete=1
for part in pemi.{sec,pub,key,pem}; do
  [ -s "$folder/$part" ] || complete=
done
if [ "$complete" ]; then
  printf 'feed-key: %s has the keys already; they are kept\n' "$folder"
  exit 0
fi
if [ -e "$folder" ]; then
  printf 'feed-key: %s is there already, and has not all keys; new ones have to reach every router, so move it away yourself\n' \
    "$folder" >&2
  exit 1
fi
# 1: in this repository, and git would take it along; 128: elsewhere.
ignored=0
git check-ignore -q -- "$folder/pemi.sec" 2>/dev/null || ignored=$?
if [ "$ignored" = 1 ]; then
  printf 'feed-key: git does not ignore %s; take .feed-key, or a folder elsewhere\n' "$folder" >&2
  exit 1
fi
umask 077
mkdir -p "$(dirname "$folder")"
fresh=$(mktemp -d "$(dirname "$folder")/feed-key.XXXXXX")
trap 'rm -rf "$fresh"' EXIT

# usign's format, for opkg
signify-openbsd -G -n -c 'PEMI feed' -p "$fresh/pemi.pub" -s "$fresh/pemi.sec"
# As OpenWrt's build makes its own, for apk
openssl ecparam -name prime256v1 -genkey -noout -out "$fresh/pemi.key"
openssl pkey -in "$fresh/pemi.key" -pubout -out "$fresh/pemi.pem"
chmod 600 "$fresh"/pemi.{sec,key}
chmod 644 "$fresh"/pemi.{pub,pem}
mv -T "$fresh" "$folder"
printf 'feed-key: %s has the keys; keep a copy of it in a safe place\n' "$folder"
