#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# go.sh ARGUMENT...: the go command for this module, in this folder: that of PATH if it
# is new enough or can fetch what is, else the one that setup put into .venv.
set -euo pipefail
cd "$(dirname "$0")"
# quic-go's own minimum, as in go.mod.
minimum=1.26

is_new_enough() {
  local version
  version=$("$1" env GOVERSION 2>/dev/null) || return 1
  printf '%s\n' "$minimum" "${version#go}" | sort -VC
}

for go in go "$PWD/../../../.venv/bin/go"; do
  if command -v "$go" >/dev/null && is_new_enough "$go"; then
    exec "$go" "$@"
  fi
done
echo "go.sh: there is no Go $minimum or newer; run make setup" >&2
exit 1
