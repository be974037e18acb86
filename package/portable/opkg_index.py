# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the index of a folder of .ipk files, `Packages`, as OpenWrt's build does."""

import hashlib
import io
import tarfile
from pathlib import Path

# Of no use to opkg, which reads all of it into memory
LEFT_OUT = ("Maintainer", "LicenseFiles", "Source", "SourceName", "Require-User", "SourceDateEpoch")
# A signature of a file of such a length, in the last block of 128 bytes, is one that the
# routers' usign takes for wrong. OpenWrt adds two lines as well.
BLOCK, HEAD, WRONG = 128, 64, (110, 111)


def write(packages: list[Path]) -> bytes:
    index = b"".join(_entry(path) + b"\n" for path in sorted(packages))
    if (HEAD + len(index)) % BLOCK in WRONG:
        index += b"\n\n"
    return index


def _entry(path: Path) -> bytes:
    """The package's control file, and before its last field, which may have several lines,
    what has to be known to fetch it."""
    content = path.read_bytes()
    file = {
        "Filename": path.name,
        "Size": len(content),
        "SHA256sum": hashlib.sha256(content).hexdigest(),
    }
    lines = []
    for line in _control(content).splitlines():
        name = line.split(":")[0]
        if name in LEFT_OUT:
            continue
        if name == "Description":
            lines += [f"{field}: {value}" for field, value in file.items()]
        lines.append(line)
    return "".join(f"{line}\n" for line in lines).encode()


def _control(package: bytes) -> str:
    def member(archive: bytes, name: str) -> bytes:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            return tar.extractfile(name).read()

    return member(member(package, "./control.tar.gz"), "./control").decode()
