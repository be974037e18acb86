#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what the tests of the LuCI app need, on Debian 12; eslint into out/luci/node
# where npm's registry can be reached. Does nothing, quickly, when everything is there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
node=$here/../../out/node

"$here/../install.sh" chromium chromium-driver python3-selenium python3-pytest fonts-dejavu-core \
  fonts-wqy-zenhei

[ ! -d "$node/node_modules/@eslint/json" ] || exit 0
mkdir -p "$node"
# Versions as LuCI's own package.json has them.
if ! command -v npm >/dev/null ||
  ! npm install --prefix "$node" --silent --no-audit --no-fund \
    eslint@10 @eslint/js@10 @eslint/json@1 globals@17 >/dev/null 2>&1; then
  rm -rf "$node"
  echo "setup: eslint cannot be had (npm or its registry is missing)"
fi
