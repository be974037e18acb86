#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What OpenWrt's CI runs in a container or an emulator with the package installed:
#   test.sh PACKAGE VERSION
# Big-endian processors have to read a configuration and packets as all others do.
# shellcheck shell=dash

case $1 in pemi | pemi-tools) ;; *) exit 0 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "pemi: $*" >&2
	exit 1
}

pemi --version | grep -F "pemi $2" || fail "another version than $2"

echo '{"enabled": "1", "devices": "br-lan"}' >"$work/good.json"
pemi check --config "$work/good.json" || fail "a good configuration is refused"
echo '{"enabled": "1", "devices": "br-lan", "queues": "99"}' >"$work/bad.json"
if pemi check --config "$work/bad.json" 2>"$work/said"; then
	fail "a bad configuration is accepted"
fi
grep -F queues "$work/said" || fail "it does not say which option is wrong"

[ "$1" = pemi-tools ] || exit 0
# A recorded download, whose hop lost some of the packets.
gunzip -c "$here/test.pcap.gz" >"$work/lan.pcap"
pemi replay "$work/lan.pcap" >"$work/replay" || fail "the capture is not read"
cat "$work/replay"
grep 'packets  *read 450, quic 450, other 0, skipped 0' "$work/replay" ||
	fail "not all packets are recognised"
grep 'losses  *inferred [1-9]' "$work/replay" || fail "no loss is inferred"
