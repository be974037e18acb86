#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds OpenWrt's real `uci` and `jshn` as static programs and puts them, with
# jshn.sh, into out/realtools/TARGET (or DIRECTORY):
#   realtools.sh [native|x86_64|aarch64|mipsel] [DIRECTORY]
# Their sources come with the crate libuci-sys, json-c from Debian; one compiler,
# zig, makes them for every router. Quick when they are there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=$root/out/cache

crate=libuci-sys=1.0.5
zig=ziglang==0.14.1
json_c=0.16

target=${1:-native}
out=$(realpath -m "${2:-$root/out/realtools/$target}")
[ "$target" != native ] || target=$(uname -m)
case $target in
  x86_64 | aarch64) triple=$target-linux-musl flags=() ;;
  # Routers of this kind have no floating point unit.
  mipsel) triple=mipsel-linux-musleabi flags=(-mcpu=mips32r2) ;;
  *)
    echo "realtools: no such target: $target" >&2
    exit 2
    ;;
esac

stamp=$out/.stamp
key=$(cat "$0" "$here/debian.sh" | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" = "$key" ]; then
  exit 0
fi

# The machine's registry settings hold for this, as for everything else of cargo's.
crate_sources() {
  local helper=$cache/crate
  mkdir -p "$helper"
  printf '%s\n' '[package]' 'name = "helper"' '[lib]' 'path = "none.rs"' '[workspace]' \
    '[dependencies]' "${crate%%=*} = '=${crate##*=}'" >"$helper/Cargo.toml"
  cargo metadata --quiet --format-version 1 --manifest-path "$helper/Cargo.toml" |
    python3 -c '
import json, sys
for package in json.load(sys.stdin)["packages"]:
    if package["name"] == sys.argv[1]:
        print(package["manifest_path"].removesuffix("/Cargo.toml"))
' "${crate%%=*}"
}

json_c_sources() {
  local folder=$cache/json-c
  if [ ! -d "$folder" ]; then
    mkdir -p "$cache/json-c.part"
    (cd "$cache/json-c.part" && "$here/debian.sh" apt amd64 apt-get source -qq --download-only json-c &&
      tar -xf json-c_"$json_c"*.orig.tar.gz --strip-components 1)
    mv "$cache/json-c.part" "$folder"
  fi
  echo "$folder"
}

compiler() {
  local venv=$cache/zig
  if ! "$venv/bin/python3" -m ziglang version >/dev/null 2>&1; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$zig"
  fi
  echo "$venv/bin/python3"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
crate_dir=$(crate_sources)
json_dir=$(json_c_sources)
python=$(compiler)

# What the two projects' cmake would find out: musl is alike everywhere.
mkdir -p "$work/include" "$out/bin" "$out/share/libubox"
ln -s "$crate_dir/libubox" "$work/include/libubox"
: >"$work/include/uci_config.h"
echo '#define JSON_C_HAVE_INTTYPES_H 1' >"$work/include/json_config.h"
sed 's/@JSON_H_JSON_POINTER@//' "$json_dir/json.h.cmakein" >"$work/include/json.h"
{
  for have in DECL_INFINITY DECL_ISINF DECL_ISNAN DECL_NAN ENDIAN_H FCNTL_H GETRANDOM \
    INTTYPES_H LIMITS_H LOCALE_H OPEN REALLOC SETLOCALE SNPRINTF STDARG_H STDINT_H STDLIB_H \
    STRCASECMP STRDUP STRERROR STRINGS_H STRING_H STRNCASECMP STRTOLL STRTOULL SYS_PARAM_H \
    SYS_RANDOM_H SYS_STAT_H SYS_TYPES_H UNISTD_H USELOCALE VASPRINTF VPRINTF VSNPRINTF \
    SYSLOG_H VSYSLOG ATOMIC_BUILTINS; do
    printf '#define HAVE_%s 1\n' "$have"
  done
  for type in INT LONG LONG_LONG SIZE_T; do
    printf '#define SIZEOF_%s __SIZEOF_%s__\n' "$type" "$type"
  done
  printf '#define STDC_HEADERS 1\n#define SIZEOF_INT64_T 8\n#define SIZEOF_SSIZE_T __SIZEOF_SIZE_T__\n'
} >"$work/include/config.h"

cc() {
  "$python" -m ziglang cc -target "$triple" "${flags[@]}" -Os -s -static -std=gnu99 -D_GNU_SOURCE -w \
    -I"$work/include" "$@"
}

ubox=("$crate_dir"/libubox/{avl,avl-cmp,blob,blobmsg,utils}.c)
cc -I"$crate_dir/uci" -DUCI_PREFIX='""' -o "$out/bin/uci" \
  "$crate_dir"/uci/{cli,libuci,file,util,delta,parse,blob}.c "${ubox[@]}"
cc -DJSONC -I"$json_dir" -o "$out/bin/jshn" \
  "$crate_dir"/libubox/{jshn,blobmsg_json}.c "${ubox[@]}" \
  "$json_dir"/{arraylist,debug,json_c_version,json_object,json_object_iterator,json_tokener}.c \
  "$json_dir"/{json_util,json_visit,linkhash,printbuf,random_seed,strerror_override}.c
install -m 644 "$crate_dir/libubox/sh/jshn.sh" "$out/share/libubox/jshn.sh"
printf '%s\n' "$key" >"$stamp"
