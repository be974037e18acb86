# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034  # what is set here is for those who source this
# Which Rust target makes the packages of an OpenWrt architecture, and how.
# Sourced by the other scripts.

architectures=(
  aarch64_cortex-a53 aarch64_cortex-a72 aarch64_cortex-a76 aarch64_generic
  arm_cortex-a7 arm_cortex-a7_neon-vfpv4 arm_cortex-a8_vfpv3 arm_cortex-a9
  arm_cortex-a9_neon arm_cortex-a9_vfpv3-d16 arm_cortex-a15_neon-vfpv4
  i386_pentium-mmx i386_pentium4 mips_24kc mipsel_24kc mipsel_74kc
  powerpc_464fp powerpc_8548 riscv64_generic x86_64
)

# A nightly for `build-std`: there is no ready-made std for MIPS, and one made
# here is smaller and the same for every target. By its date, since another
# compiler would make another binary.
nightly="nightly-2026-05-20"

# select_target ARCHITECTURE: sets triple (Rust's name), zig_target (zig's name of
# the same) and zig_cpu, and rustflags.
select_target() {
  # Static, since the packages have to run with any OpenWrt's libc. No tables for
  # unwinding: panics abort. zig brings the start files and the libc, so rustc's
  # own, which it lacks for some targets, are not used.
  rustflags="-Ctarget-feature=+crt-static -Cforce-unwind-tables=no -Clink-self-contained=no"
  # Of a folder that is not there, since that std is made here.
  rustflags+=" -Alinker_messages"
  # Loaded to another address each time, so that nobody knows where its code is. rustc
  # asks for that for static programs on x86_64 alone, in words that zig does not take.
  relocation=" -Crelocation-model=pie -Clink-arg=-pie"
  # But on MIPS, where position-independent code is an eighth larger and reads most
  # addresses from a table (README.md has the figures).
  [[ $1 != mips* ]] || relocation=" -Crelocation-model=static"
  rustflags+=$relocation
  case $1 in
    aarch64_*)
      triple=aarch64-unknown-linux-musl zig_target=aarch64-linux-musl zig_cpu=generic
      ;;
    # Those whose floating-point unit OpenWrt does not use
    arm_cortex-a7 | arm_cortex-a9)
      triple=armv7-unknown-linux-musleabi zig_target=arm-linux-musleabi
      zig_cpu=generic+v7a+soft_float
      ;;
    # The least that all of these have
    arm_cortex-*)
      triple=armv7-unknown-linux-musleabihf zig_target=arm-linux-musleabihf
      zig_cpu=generic+v7a+vfp3d16
      ;;
    i386_*)
      triple=i586-unknown-linux-musl zig_target=x86-linux-musl zig_cpu=pentium_mmx
      ;;
    mips_24kc)
      triple=mips-unknown-linux-musl zig_target=mips-linux-musleabi
      zig_cpu=mips32r2+soft_float
      ;;
    mipsel_24kc | mipsel_74kc)
      triple=mipsel-unknown-linux-musl zig_target=mipsel-linux-musleabi
      zig_cpu=mips32r2+soft_float
      ;;
    # The least that both have: one instruction that orders memory instead of three, and no
    # floating-point registers, for which one of them has others than the rest of PowerPC.
    powerpc_464fp | powerpc_8548)
      triple=powerpc-unknown-linux-musl zig_target=powerpc-linux-musleabi
      zig_cpu=generic-hard_float+msync
      rustflags+=" -Ctarget-feature=-hard-float,+msync"
      ;;
    riscv64_generic)
      triple=riscv64gc-unknown-linux-musl zig_target=riscv64-linux-musl zig_cpu=baseline_rv64
      ;;
    x86_64)
      triple=x86_64-unknown-linux-musl zig_target=x86_64-linux-musl zig_cpu=x86_64
      ;;
    *)
      printf 'unknown ARCH "%s"; there are: %s\n' "$1" "${architectures[*]}" >&2
      exit 2
      ;;
  esac
}
