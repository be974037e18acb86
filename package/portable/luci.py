# SPDX-License-Identifier: GPL-2.0-or-later
"""What LuCI's luci.mk would make of the app: its package and one for each language.

Nothing in them depends on the processor. JavaScript is left as it is, which luci.mk shortens.
"""

from dataclasses import replace
from pathlib import Path, PurePosixPath

import lmo
from meta import Makefile, Meta
from tree import File, below

# By the folder in po: the name in packages and files, and the one in LuCI's list of languages
LANGUAGES = {
    "de": ("de", "Deutsch (German)"),
    "zh_Hans": ("zh-cn", "简体中文 (Simplified Chinese)"),
}
TRANSLATIONS = PurePosixPath("usr/lib/lua/luci/i18n")
# LuCI keeps menus and modules, and rpcd permissions, of which there are new ones now.
POSTINST = """[ -n "${IPKG_INSTROOT}" ] || {
	rm -f /tmp/luci-indexcache.*
	rm -rf /tmp/luci-modulecache/
	/etc/init.d/rpcd reload 2>/dev/null
	exit 0
}
"""


def packages(app: Path) -> list[tuple[Meta, list[File]]]:
    """What each is called, and the files in it."""
    make = Makefile(app / "Makefile")
    about = Meta(
        name=app.name,
        version=make.version,
        description=[make["LUCI_DESCRIPTION"]],
        section="luci",
        license=make["PKG_LICENSE"],
        license_files="",
        maintainer=make["LUCI_MAINTAINER"],
        url=make["LUCI_URL"],
        depends=make.depends(make["LUCI_DEPENDS"]),
        source=f"feeds/{app.name.rsplit('-')[-1]}/{app.name}",
        postinst=POSTINST,
    )
    found = [(about, below(app / "root") + below(app / "htdocs", "www"))]
    for folder in sorted(path.name for path in (app / "po").iterdir() if path.name != "templates"):
        if folder not in LANGUAGES:
            raise ValueError(f"{app / 'po' / folder}: luci.py has no name for this language")
        found.append(_translation(about, app / "po" / folder))
    return found


def _translation(app: Meta, folder: Path) -> tuple[Meta, list[File]]:
    code, language = LANGUAGES[folder.name]
    name = f"luci-i18n-{app.name.removeprefix('luci-app-')}-{code}"
    about = replace(
        app,
        name=name,
        description=[f"Translation for {app.name} - {language}"],
        depends=["libc", app.name],
        url="",
        postinst="",
    )
    listed = f"uci set luci.languages.{code.replace('-', '_')}='{language}'; uci commit luci\n"
    files = [File(PurePosixPath("etc/uci-defaults") / name, 0o644, listed.encode())]
    for po in sorted(folder.glob("*.po")):
        path = TRANSLATIONS / f"{po.stem}.{code}.lmo"
        files.append(File(path, 0o644, lmo.convert(po.read_bytes())))
    return about, files
