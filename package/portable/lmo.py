# SPDX-License-Identifier: GPL-2.0-or-later
"""Translations as LuCI wants them: makes an .lmo of a .po file, as LuCI's po2lmo does.

An .lmo file has the translated texts, each at a multiple of four bytes, then an index of
(hash of the original, number of forms, place, length) sorted by the hash, and at its end the
place of that index. The rule for plurals is an entry whose hash is 0. All numbers are
big-endian.
"""

import re
import struct
from dataclasses import dataclass, field

# What LuCI's converter reads at once; it would take the rest of a longer line for another.
LONGEST_LINE = 4094
WORD = 0xFFFFFFFF
LINE = re.compile(rb'(msgctxt|msgid_plural|msgid|msgstr)?(?:\[(\d+)\])?\s*"(.*)"\s*$')
PLURALS = re.compile(rb"(?:^|\\n)Plural-Forms: (.*?)\\n", re.IGNORECASE)


class NotConvertible(ValueError):
    """The .po file has something that LuCI's converter would misread."""


@dataclass
class Message:
    context: bytes = b""
    text: bytes = b""
    # That there is another text for many; which one it is does not matter.
    plural: bytes = b""
    forms: dict[int, bytes] = field(default_factory=dict)


def convert(po: bytes) -> bytes:
    """The bytes of the .lmo file; none if nothing is translated."""
    texts, index = b"", []

    def add(key: int, forms: int, text: bytes):
        nonlocal texts
        index.append((key, forms, len(texts), len(text)))
        texts += text + bytes(-len(text) % 4)

    for message in messages(po):
        if not message.text:
            if rule := PLURALS.search(message.forms.get(0, b"")):
                add(0, 0, rule[1])
            continue
        for number, form in sorted(message.forms.items()):
            key = _key(message, number)
            # A text that is its own translation is not worth its place.
            if form and hashed(key) != hashed(form):
                add(hashed(key), max(message.forms) + 1, form)
    if not texts:
        return b""
    index.sort(key=lambda entry: entry[0])
    return b"".join(
        [texts, *(struct.pack(">4I", *entry) for entry in index), struct.pack(">I", len(texts))]
    )


def messages(po: bytes) -> list[Message]:
    """What the file translates, its head first: that is the one without a text."""
    found: list[Message] = []
    state = ("", 0)
    for line in po.split(b"\n"):
        if len(line) > LONGEST_LINE:
            raise NotConvertible(f"a line of {len(line)} bytes; wrap it: msgcat --width=100")
        match = LINE.match(line)
        if line.startswith(b"#") or not match:
            continue
        word, number, quoted = match.groups()
        if word:
            before, state = state[0], (word.decode(), int(number or 0))
            if word == b"msgctxt" or (word == b"msgid" and before != "msgctxt"):
                found.append(Message())
        if not found:
            continue
        _append(found[-1], state, unquoted(quoted))
    return found


def _append(message: Message, state: tuple[str, int], text: bytes):
    match state:
        case ("msgctxt", _):
            message.context += text
        case ("msgid", _):
            message.text += text
        case ("msgid_plural", _):
            message.plural += text
        case ("msgstr", number):
            message.forms[number] = message.forms.get(number, b"") + text


def unquoted(text: bytes) -> bytes:
    """Of the escapes only those of quote and backslash are resolved: LuCI keeps the others."""
    return re.sub(rb'\\(["\\])', rb"\1", text)


def _key(message: Message, number: int) -> bytes:
    key = message.text
    if message.context:
        key = message.context + b"\1" + key
    if message.plural:
        key += b"\2%d" % number
    return key


def hashed(data: bytes) -> int:
    """Paul Hsieh's SuperFastHash, begun with the length, as LuCI uses it."""

    def half(at: int) -> int:
        return data[at] | data[at + 1] << 8

    def signed(at: int) -> int:
        return data[at] - ((data[at] & 0x80) << 1)

    if not data:
        return 0
    value = len(data)
    rest = len(data) % 4
    for at in range(0, len(data) - rest, 4):
        value = (value + half(at)) & WORD
        value = ((value << 16) ^ (half(at + 2) << 11) ^ value) & WORD
        value = (value + (value >> 11)) & WORD
    at = len(data) - rest
    if rest == 3:
        value = (value + half(at)) & WORD
        value = (value ^ value << 16 ^ signed(at + 2) << 18) & WORD
        value = (value + (value >> 11)) & WORD
    elif rest == 2:
        value = (value + half(at)) & WORD
        value = (value ^ value << 11) & WORD
        value = (value + (value >> 17)) & WORD
    elif rest == 1:
        value = (value + signed(at)) & WORD
        value = (value ^ value << 10) & WORD
        value = (value + (value >> 1)) & WORD
    for left, right in ((3, 5), (4, 17), (25, 6)):
        value = (value ^ value << left) & WORD
        value = (value + (value >> right)) & WORD
    return value
