#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs the tests that need no packet queue on an emulated big-endian 32-bit CPU.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=package/portable/targets.sh
. package/portable/targets.sh
select_target mips_24kc
package/portable/setup.sh
package/portable/libraries.sh mips_24kc

# As in the packages, but that tests unwind; optimised, since the emulator is slow.
cargo_test() {
  RUSTFLAGS="-Clink-self-contained=no -Ctarget-feature=+crt-static -Alinker_messages
    -Crelocation-model=static -Lnative=$PWD/target/portable/lib/$triple" \
    CARGO_TARGET_MIPS_UNKNOWN_LINUX_MUSL_RUNNER="qemu-mips-static" \
    CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0 \
    PATH="$PWD/.venv/bin:$PATH" \
    cargo-zigbuild test --locked --target "$triple" --target-dir target/portable/tests \
    -Z build-std=std,panic_unwind "$@"
}
export RUSTUP_TOOLCHAIN=$nightly
cargo_test --package pemi-engine --package pemi-quack --package pemi-radio \
  --package pemi-sidekick --package pemi-ubus --package pemi --lib
# ubus is in the byte order of the network; what needs a packet queue is left out,
# since the emulator does not translate those messages to the kernel.
cargo_test --package pemi-ubus --test recorded
# netlink is in that of the machine, so its recordings are not for this one.
cargo_test --package pemi-radio --test crafted
cargo_test --package pemi --test ubus -- --skip the_daemon_tells_the_same_as_on_its_control_socket
# Random input, less of it: an emulated second is a long one.
PROPTEST_CASES=16 cargo_test --manifest-path test/Cargo.toml --package pemi-engine-tests \
  --test properties --test malformed --test guard --test uplink
PROPTEST_CASES=16 FUZZ_TIMES=20 cargo_test --manifest-path test/Cargo.toml \
  --package pemi-quack-tests --package pemi-fuzz --test properties --test seeds
