# SPDX-License-Identifier: GPL-2.0-or-later
"""What the packages are called and need, read from the feed's Makefiles.

The Makefiles of package/pemi and luci-app-pemi, with package/about.mk which they include,
are the one place where it is said. Only the forms used there are understood.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

# The static binary brings these.
LINKED_IN = {"libmnl", "libnetfilter-queue"}


@dataclass(frozen=True)
class Meta:
    name: str
    version: str
    description: list[str]
    section: str
    license: str
    license_files: str
    maintainer: str
    url: str
    depends: list[str]
    source: str
    user: str = ""
    conffiles: tuple[str, ...] = ()
    # Of the package's own, after what is done for every package
    postinst: str = ""


class Makefile:
    """Its variables and blocks, and the variables of what it includes beside it."""

    def __init__(self, path: Path):
        self.path = path
        self.text = path.read_text()
        known = self.text
        for name in re.findall(r"^include (\.\S+)$", self.text, re.MULTILINE):
            known += (path.parent / name).read_text()
        found = re.findall(r"^\s*(\w+):=(.*)$", known, re.MULTILINE)
        self._variables = {name: value.strip() for name, value in found}

    def __getitem__(self, name: str) -> str:
        if name not in self._variables:
            raise ValueError(f"{self.path}: no {name}")
        value = self._variables[name]
        return re.sub(r"\$\((\w+)\)", lambda used: self._variables.get(used[1], used[0]), value)

    def block(self, name: str) -> list[str]:
        found = re.search(rf"^define {name}\n(.*?)^endef$", self.text, re.MULTILINE | re.DOTALL)
        if not found:
            raise ValueError(f"{self.path}: no {name}")
        return [line.strip() for line in found[1].splitlines()]

    def script(self, name: str) -> str:
        """What stands behind the first line, which says who runs it."""
        lines = self.block(name)[1:]
        return "".join(f"{line}\n" for line in lines).replace("$$", "$")

    def depends(self, words: str) -> list[str]:
        """What the words of a field DEPENDS ask for."""
        wanted = [word.removeprefix("+") for word in words.split() if word[0] == "+"]
        return ["libc", *(package for package in wanted if package not in LINKED_IN)]

    def field(self, package: str, name: str) -> str:
        """What a package's own block says, where there are several packages."""
        for line in self.block(f"Package/{package}"):
            if line.startswith(f"{name}:="):
                return line.removeprefix(f"{name}:=")
        raise ValueError(f"{self.path}: no {name} of {package}")

    @property
    def version(self) -> str:
        return f"{self['PKG_VERSION']}-r{self['PKG_RELEASE']}"


def read(makefile: Path) -> Meta:
    """Of the daemon's package."""
    make = Makefile(makefile)
    name = make["PKG_NAME"]
    return replace(
        _of(make, name),
        user=make["USERID"],
        conffiles=tuple(make.block(f"Package/{name}/conffiles")),
        postinst=make.script(f"Package/{name}/postinst"),
    )


def read_tools(makefile: Path) -> Meta:
    """Of what comes out of the same build, beside it."""
    make = Makefile(makefile)
    return _of(make, f"{make['PKG_NAME']}-tools")


def _of(make: Makefile, name: str) -> Meta:
    source = make["PKG_NAME"]
    return Meta(
        name=name,
        version=make.version,
        description=make.block(f"Package/{name}/description"),
        section=make.field(name, "SECTION"),
        license=make["PKG_LICENSE"],
        license_files=make["PKG_LICENSE_FILES"],
        maintainer=make["PKG_MAINTAINER"],
        url=make["URL"],
        depends=make.depends(make.field(name, "DEPENDS")),
        source=f"feeds/{source}/package/{source}",
    )
