# SPDX-License-Identifier: GPL-2.0-or-later
"""What an ELF file's headers tell."""

import struct
from dataclasses import dataclass

LOAD, INTERPRETER, ARM_HARD_FLOAT = 1, 3, 0x400
# Of a file that may be loaded anywhere
ANYWHERE = 3
# Kind of a section; symbols for dynamic linking are another
SYMBOLS = 2
MIPS_ABI_FLAGS = 0x70000003
MACHINES = {
    **{3: "i386", 8: "mips", 20: "powerpc", 40: "arm", 62: "x86_64"},
    **{183: "aarch64", 243: "riscv64"},
}


@dataclass(frozen=True)
class Elf:
    machine: str
    bits: int
    big_endian: bool
    static: bool
    position_independent: bool
    stripped: bool
    # Of PowerPC headers do not tell.
    hard_float: bool


def read(data: bytes) -> Elf:
    assert data[:4] == b"\x7fELF"
    bits = 32 * data[4]
    order = "<" if data[5] == 1 else ">"
    words = "HHIIIIIHHHHHH" if bits == 32 else "HHIQQQIHHHHHH"
    header = struct.unpack_from(order + words, data, 16)
    machine = MACHINES[header[1]]
    segments = _table(data, header[4], header[8], header[9], order + "IIII")
    sections = _table(data, header[5], header[10], header[11], order + "II")
    kinds = {segment[0] for segment in segments}
    hard_float = True
    if machine == "arm":
        hard_float = bool(header[6] & ARM_HARD_FLOAT)
    if machine == "mips":
        (place,) = (segment[1] for segment in segments if segment[0] == MIPS_ABI_FLAGS)
        # The floating-point ABI; 3 is soft.
        hard_float = data[place + 7] != 3
    return Elf(
        machine=machine,
        bits=bits,
        big_endian=order == ">",
        static=INTERPRETER not in kinds and LOAD in kinds,
        position_independent=header[0] == ANYWHERE,
        stripped=not any(section[1] == SYMBOLS for section in sections),
        hard_float=hard_float,
    )


def _table(data: bytes, start: int, size: int, count: int, words: str) -> list[tuple]:
    return [struct.unpack_from(words, data, start + i * size) for i in range(count)]
