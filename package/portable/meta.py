# SPDX-License-Identifier: GPL-2.0-or-later
"""What the package is called and needs, read from the feed's Makefile.

The Makefile of package/pemi is the one place where it is said. Only the forms used
there are understood.
"""

import re
from dataclasses import dataclass
from pathlib import Path

# The static binary brings these.
LINKED_IN = {"libmnl", "libnetfilter-queue"}


@dataclass(frozen=True)
class Meta:
    name: str
    version: str
    title: str
    description: list[str]
    section: str
    license: str
    license_files: str
    maintainer: str
    depends: list[str]
    user: str
    conffiles: list[str]
    source: str


def read(makefile: Path) -> Meta:
    text = makefile.read_text()

    def variable(name: str) -> str:
        found = re.search(rf"^\s*{name}:=(.*)$", text, re.MULTILINE)
        if not found:
            raise ValueError(f"{makefile}: no {name}")
        return found[1].strip()

    def block(name: str) -> list[str]:
        found = re.search(rf"^define {name}\n(.*?)^endef$", text, re.MULTILINE | re.DOTALL)
        if not found:
            raise ValueError(f"{makefile}: no {name}")
        return [line.strip() for line in found[1].splitlines()]

    name = variable("PKG_NAME")
    wanted = [word.removeprefix("+") for word in variable("DEPENDS").split() if word[0] == "+"]
    return Meta(
        name=name,
        version=f"{variable('PKG_VERSION')}-r{variable('PKG_RELEASE')}",
        title=variable("TITLE"),
        description=block(f"Package/{name}/description"),
        section=variable("SECTION"),
        license=variable("PKG_LICENSE"),
        license_files=variable("PKG_LICENSE_FILES"),
        maintainer=variable("PKG_MAINTAINER"),
        depends=["libc", *(package for package in wanted if package not in LINKED_IN)],
        user=variable("USERID"),
        conffiles=block(f"Package/{name}/conffiles"),
        source=f"feeds/{name}/package/{name}",
    )
