# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes apk's binary format, ADB: a tree of values, then blocks of data.

A value is a little-endian word, four bits of type above 28 bits of either the value
itself or the place of a longer one. Objects and arrays are words one after another,
the first telling how many. The format is described in apk-v3(5) of apk-tools.
"""

import struct
import zlib

SPECIAL, INT, INT32 = 0x0, 0x1, 0x2
BLOB8, BLOB16, BLOB32 = 0x8, 0x9, 0xA
# How each says its length
BLOBS = {BLOB8: ("<B", 1), BLOB16: ("<H", 2), BLOB32: ("<I", 4)}
ARRAY, OBJECT = 0xD, 0xE

NULL = 0
# A value's bits in its word, and what is too large for them
IMMEDIATE = 1 << 28

BLOCK_ADB, BLOCK_SIGNATURE, BLOCK_DATA = 0, 1, 2
BLOCK_ALIGNMENT = 8


class Tree:
    """Grows from the leaves; every method returns the word that stands for what it wrote."""

    # Two version bytes, two reserved, and the root's word, which comes last.
    HEAD = 8

    def __init__(self):
        self._out = bytearray(self.HEAD)
        # Equal values are written once.
        self._places: dict[tuple[int, bytes], int] = {}

    def number(self, value: int) -> int:
        if value < IMMEDIATE:
            return _word(INT, value)
        return _word(INT32, self._place(struct.pack("<I", value), 4))

    def blob(self, data: bytes | str) -> int:
        data = data.encode() if isinstance(data, str) else data
        if not data:
            return NULL
        for kind, (code, align) in BLOBS.items():
            if len(data) < 1 << (8 * align):
                return _word(kind, self._place(struct.pack(code, len(data)) + data, align))
        raise ValueError("too long")

    def array(self, words: list[int]) -> int:
        return self.words(ARRAY, words)

    def object(self, fields: dict[int, int]) -> int:
        """`fields` by their number, from 1."""
        return self.words(
            OBJECT, [fields.get(number, NULL) for number in range(1, max(fields) + 1)]
        )

    def finish(self, root: int) -> bytearray:
        struct.pack_into("<I", self._out, 4, root)
        return self._out

    def words(self, kind: int, words: list[int]) -> int:
        """An array or, without what is missing at its end, an object."""
        words = list(words)
        while words and words[-1] == NULL:
            words.pop()
        if not words:
            return NULL
        count = len(words) + 1
        return _word(kind, self._place(struct.pack(f"<{count}I", count, *words), 4))

    def _place(self, data: bytes, align: int) -> int:
        key = (align, data)
        if key not in self._places:
            self._out += bytes(-len(self._out) % align)
            self._places[key] = len(self._out)
            self._out += data
        return self._places[key]


def copy(source: bytes, word: int, to: Tree) -> int:
    """A value of another tree's bytes, with all that it has below it."""
    kind, place = word >> 28, word % IMMEDIATE
    if kind in (SPECIAL, INT):
        return word
    if kind == INT32:
        return to.number(_u32(source, place))
    if kind in (ARRAY, OBJECT):
        return to.words(kind, [copy(source, below, to) for below in words(source, word)])
    return to.blob(blob(source, word))


def blob(source: bytes, word: int) -> bytes:
    """The bytes of a blob of another tree."""
    kind, place = word >> 28, word % IMMEDIATE
    if kind not in BLOBS:
        raise ValueError(f"a value of kind {kind} is not known")
    code, size = BLOBS[kind]
    (length,) = struct.unpack_from(code, source, place)
    return source[place + size : place + size + length]


def words(source: bytes, word: int) -> list[int]:
    """What an array or object of a tree's bytes holds."""
    place = word % IMMEDIATE
    return [_u32(source, place + 4 * at) for at in range(1, _u32(source, place))]


def root(source: bytes) -> int:
    """The word of what a tree's bytes are of."""
    return _u32(source, 4)


def _u32(source: bytes, place: int) -> int:
    return struct.unpack_from("<I", source, place)[0]


def blob_place(word: int, data: bytes) -> slice:
    """Where the bytes of a short blob are in what `finish` returns."""
    start = word % IMMEDIATE + 1
    return slice(start, start + len(data))


def file(schema: bytes, blocks: bytes) -> bytes:
    """A whole file, compressed."""
    deflate = zlib.compressobj(level=9, wbits=-15)
    return b"ADBd" + deflate.compress(b"ADB." + schema + blocks) + deflate.flush()


def first_block(file: bytes, schema: bytes) -> bytes:
    """The tree of values that a compressed file begins with."""
    if file[:4] != b"ADBd":
        raise ValueError("not a compressed ADB file")
    raw = zlib.decompress(file[4:], wbits=-15)
    if raw[:8] != b"ADB." + schema:
        raise ValueError(f"not an ADB file of {schema.decode()}")
    return raw[12 : 8 + _u32(raw, 8) % (1 << 30)]


def block(kind: int, data: bytes) -> bytes:
    """Its size counts the word before it, but not the padding after it."""
    size = 4 + len(data)
    return struct.pack("<I", kind << 30 | size) + data + bytes(-size % BLOCK_ALIGNMENT)


def _word(kind: int, value: int) -> int:
    if not 0 <= value < IMMEDIATE:
        raise ValueError("too large")
    return kind << 28 | value
