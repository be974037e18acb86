# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes an .ipk: a gzip'd tar of two gzip'd tars, the data and the control files."""

import gzip
import io
import tarfile
from pathlib import PurePosixPath

import scripts
from meta import Meta
from tree import File, folders


def write(meta: Meta, arch: str, tree: list[File], time: int) -> bytes:
    """The package's bytes; all that is in it bears the same `time`."""
    entries = [_entry(path, None, 0o755, time) for path in [PurePosixPath("."), *folders(tree)]]
    entries += [_entry(file.path, file.data, file.mode, time) for file in tree]
    data = _tar(sorted(entries, key=lambda entry: entry[0].name))

    # What opkg knows as its size is that of the unpacked archive.
    control = {"control": (_control(meta, arch, len(data), time), 0o644)}
    present = {f"/{file.path}" for file in tree}
    conffiles = [path for path in meta.conffiles if path in present]
    if conffiles:
        control["conffiles"] = ("".join(f"{path}\n" for path in conffiles), 0o644)
    control |= {name: (text, 0o755) for name, text in scripts.for_opkg(meta.postinst).items()}
    inner = [_entry(PurePosixPath("."), None, 0o755, time)]
    inner += [
        _entry(PurePosixPath(name), text.encode(), mode, time)
        for name, (text, mode) in sorted(control.items())
    ]

    parts = {
        "debian-binary": b"2.0\n",
        "data.tar.gz": _gzip(data),
        "control.tar.gz": _gzip(_tar(inner)),
    }
    return _gzip(
        _tar([_entry(PurePosixPath(name), part, 0o644, time) for name, part in parts.items()])
    )


def _control(meta: Meta, arch: str, installed_size: int, time: int) -> str:
    fields = {
        "Package": meta.name,
        "Version": meta.version,
        "Depends": ", ".join(meta.depends),
        "Source": meta.source,
        "SourceName": meta.name,
        "License": meta.license,
        "LicenseFiles": meta.license_files,
        "Section": meta.section,
        "Require-User": meta.user,
        "SourceDateEpoch": time,
        "URL": meta.url,
        "Maintainer": meta.maintainer,
        "Architecture": arch,
        "Installed-Size": installed_size,
        # Lines after the first begin with a space.
        "Description": "\n ".join(meta.description),
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def _entry(path: PurePosixPath, data: bytes | None, mode: int, time: int):
    """A file, or a folder if there are no data, and what it holds."""
    # tarfile writes the "/" after a folder's name itself.
    info = tarfile.TarInfo("." if path == PurePosixPath(".") else f"./{path}")
    info.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
    info.size = len(data or b"")
    info.mode, info.mtime = mode, time
    info.uname = info.gname = ""
    return info, data


def _tar(entries) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data) if data is not None else None)
    return out.getvalue()


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, compresslevel=9, mtime=0)
