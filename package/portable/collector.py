# SPDX-License-Identifier: GPL-2.0-or-later
"""The package of the collector for Prometheus: a file in Lua, for every processor."""

from pathlib import Path

from meta import Makefile, Meta
from tree import File, below


def packages(folder: Path) -> list[tuple[Meta, list[File]]]:
    """What it is called, and the files in it."""
    make = Makefile(folder / "Makefile")
    name = make["PKG_NAME"]
    about = Meta(
        name=name,
        version=make.version,
        description=make.block(f"Package/{name}/description"),
        section=make["SECTION"],
        license=make["PKG_LICENSE"],
        license_files="",
        maintainer=make["PKG_MAINTAINER"],
        url=make["URL"],
        depends=make.depends(make["DEPENDS"]),
        source=f"feeds/pemi/package/{name}",
    )
    return [(about, below(folder / "files"))]
