#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Debian packages of any architecture, without installing them: apt with a state
# of its own in out/cache, so that the machine's stays as it is. Of Debian 12, or of the
# suite that DEBIAN_SUITE names.
#   debian.sh apt ARCH COMMAND...             as if on a bare machine of ARCH
#   debian.sh unpack ARCH DIR PACKAGE...      these packages alone, into DIR
set -euo pipefail
cache=$(cd "$(dirname "$0")/../.." && pwd)/out/cache
verb=$1 arch=$2
shift 2

suite=${DEBIAN_SUITE:-bookworm}
# Version numbers are no guide between suites, so each has a state of its own.
state=$cache/apt/$arch${DEBIAN_SUITE:+-$DEBIAN_SUITE}
export APT_CONFIG=$state/apt.conf

# Anew each time: the folder may have been moved.
configure() {
  local type
  mkdir -p "$state"/{state/lists/partial,archives/partial}
  : >"$state/status"
  for type in deb deb-src; do
    echo "$type [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
      "http://deb.debian.org/debian $suite main"
  done >"$state/sources.list"
  cat >"$APT_CONFIG" <<END
Dir::State "$state/state";
Dir::State::status "$state/status";
Dir::Cache "$state";
Dir::Etc::SourceList "$state/sources.list";
Dir::Etc::SourceParts "-";
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Sandbox::User "root";
END
}

update() {
  apt-get update -qq
  touch "$state/updated"
}

unpack() {
  local directory=$1 debs=$cache/debs/$arch package
  shift
  mkdir -p "$debs" "$directory"
  for package in "$@"; do
    if ! compgen -G "$debs/${package}_*.deb" >/dev/null; then
      # An index older than the archive names files that are gone.
      (cd "$debs" && { apt-get download -qq "$package" ||
        { update && apt-get download -qq "$package"; }; })
    fi
    dpkg-deb -x "$(compgen -G "$debs/${package}_*.deb")" "$directory"
  done
}

configure
[ -e "$state/updated" ] || update
case $verb in
  apt) "$@" ;;
  unpack) unpack "$@" ;;
  *)
    echo "debian.sh: no such command: $verb" >&2
    exit 2
    ;;
esac
