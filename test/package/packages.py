# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads packages back: what they say of themselves and the files in them.

Written from the formats' descriptions, apart from the code that writes them.
"""

import gzip
import hashlib
import io
import struct
import tarfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    mode: int
    owner: tuple
    data: bytes | None  # none for a folder


@dataclass
class Package:
    fields: dict[str, str]
    entries: dict[str, Entry]
    scripts: dict[str, str]
    times: set[int] = field(default_factory=set)
    conffiles: list[str] = field(default_factory=list)

    def files(self) -> dict[str, Entry]:
        return {name: entry for name, entry in self.entries.items() if entry.data is not None}


def read_ipk(path: Path) -> Package:
    outer = _tar(gzip.decompress(path.read_bytes()))
    assert list(outer) == ["./debian-binary", "./data.tar.gz", "./control.tar.gz"]
    assert outer["./debian-binary"][1] == b"2.0\n"
    control = _tar(gzip.decompress(outer["./control.tar.gz"][1]))
    data = gzip.decompress(outer["./data.tar.gz"][1])
    texts = {name: content.decode() for name, (_, content) in control.items() if content}
    package = Package(fields=_control(texts.pop("./control")), entries={}, scripts={})
    assert int(package.fields["Installed-Size"]) == len(data)
    package.conffiles = texts.pop("./conffiles", "").splitlines()
    for name, text in texts.items():
        assert control[name][0].mode == 0o755
        package.scripts[name.removeprefix("./")] = text
    for name, (info, content) in _tar(data).items():
        owner = (info.uid, info.gid, info.uname, info.gname)
        package.entries[name.removeprefix("./")] = Entry(info.mode, owner, content)
        package.times.add(info.mtime)
    return package


def _tar(data: bytes) -> dict[str, tuple[tarfile.TarInfo, bytes | None]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
        return {m.name: (m, tar.extractfile(m).read() if m.isfile() else None) for m in members}


def _control(text: str) -> dict[str, str]:
    assert text.endswith("\n")
    lines = text.replace("\n ", " ").splitlines()
    return dict(line.split(": ", 1) for line in lines)


INFO = {
    **{1: "Package", 2: "Version", 4: "Description", 5: "Architecture", 6: "License"},
    **{8: "Maintainer", 9: "URL"},
}
SCRIPTS = {3: "post-install", 4: "pre-deinstall", 7: "post-upgrade"}


def read_apk(path: Path) -> Package:
    raw = path.read_bytes()
    assert raw[:4] == b"ADBd"
    raw = zlib.decompress(raw[4:], wbits=-15)
    assert raw[:8] == b"ADB.pckg"
    (kind, head), *rest = _blocks(raw[8:])
    assert kind == 0

    info, paths, scripts = (_value(head, word) for word in _words(head, _u32(head, 4))[:3])
    info = [_value(head, word) for word in info]
    identity = info[2]
    zeroed = head.replace(identity, bytes(len(identity)), 1)
    assert hashlib.sha256(zeroed).digest()[:20] == identity
    package = Package(fields={}, entries={}, scripts={})
    package.fields = {name: info[i - 1].decode() for i, name in INFO.items() if info[i - 1]}
    depends = [_value(head, _value(head, word)[0]).decode() for word in info[14]]
    assert depends == sorted(depends)
    package.fields["Depends"] = ", ".join(depends)
    package.scripts = {
        SCRIPTS[i]: _value(head, word).decode() for i, word in enumerate(scripts, 1) if word
    }

    contents = {struct.unpack_from("<II", data): data[8:] for kind, data in rest if kind == 2}
    for i, folder in enumerate((_value(head, word) for word in paths), 1):
        name, acl, files = [_value(head, word) for word in folder] + [[]] * (3 - len(folder))
        name = (name or b"").decode()
        package.entries[name or "."] = Entry(*_acl(head, acl), None)
        for j, fields in enumerate((_value(head, word) for word in files), 1):
            base, acl, size, time, digest = (_value(head, word) for word in fields)
            data = contents.pop((i, j), b"")
            assert (len(data), hashlib.sha256(data).digest()) == (size, digest)
            package.entries[f"{name}/{base.decode()}"] = Entry(*_acl(head, acl), data)
            package.times.add(time)
    assert not contents
    return package


def _blocks(raw: bytes):
    while raw:
        kind, size = _u32(raw, 0) >> 30, _u32(raw, 0) & 0x3FFFFFFF
        yield kind, raw[4:size]
        raw = raw[size + -size % 8 :]


def _acl(head: bytes, acl: list[int]) -> tuple[int, tuple]:
    mode, user, group = (_value(head, word) for word in acl)
    return mode, (user, group)


def _value(head: bytes, word: int):
    kind, value = word >> 28, word & 0x0FFFFFFF
    if word == 0:
        return None
    if kind == 1:
        return value
    if kind == 2:
        return _u32(head, value)
    if kind in (0xD, 0xE):
        return _words(head, word)
    code = {0x8: "<B", 0x9: "<H", 0xA: "<I"}[kind]
    (size,) = struct.unpack_from(code, head, value)
    start = value + struct.calcsize(code)
    return head[start : start + size]


def _words(head: bytes, word: int) -> list[int]:
    place = word & 0x0FFFFFFF
    return [_u32(head, place + 4 * i) for i in range(1, _u32(head, place))]


def _u32(data: bytes, place: int) -> int:
    return struct.unpack_from("<I", data, place)[0]
