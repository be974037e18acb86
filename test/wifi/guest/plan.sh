# SPDX-License-Identifier: GPL-2.0-or-later
# Carries out the plan that the host packed beside this: /plan/boot says what the lab is like,
# /plan/runs/* what is done in it, one after the other. What comes of it goes out by the second
# serial port, each run as one archive.
# shellcheck shell=dash
# shellcheck disable=SC1090,SC1091 # the plan comes with each boot

. /plan/boot
. /usr/lib/wifi/lab.sh
. /usr/lib/wifi/run.sh

RESULTS=/dev/ttyS1

tell() {
	echo "$*" >$RESULTS
}

now() {
	cut -d' ' -f1 /proc/uptime
}

stty -F $RESULTS raw
tell "booted $(now)"
lab_up
tell "ready $(now)"
for plan in /plan/runs/*; do
	name=${plan##*/}
	logs=/run/logs/$name
	mkdir -p "$logs"
	(. "$plan" && run) >"$logs/log" 2>&1
	echo "$?" >"$logs/outcome"
	tell "run $name"
	tar -C "$logs" -c . | gzip -1 | base64 >$RESULTS
	tell "end $name"
	rm -rf "$logs"
done
tell "done $(now)"
