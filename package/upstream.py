#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Puts our packages into checkouts of openwrt/packages and openwrt/luci, for a pull
request: upstream.py [--draft] TARBALL PACKAGES LUCI

TARBALL is the release that OpenWrt will download, PEMI_RELEASES in about.mk where. With
--draft placeholders are no reason to refuse. Nothing is committed.
"""

import argparse
import hashlib
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "package/portable"))
from meta import Makefile  # noqa: E402 - after the folder is known

DAEMON, APP = ROOT / "package/pemi", ROOT / "luci-app-pemi"
COLLECTOR = ROOT / "package/prometheus-node-exporter-lua-pemi"
# Of the app: the rest is for this repository.
PARTS = ("htdocs", "root", "po")
HERE = re.compile(r"^# here\b.*?^# end\n", re.MULTILINE | re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--draft", action="store_true")
    parser.add_argument("tarball")
    parser.add_argument("packages")
    parser.add_argument("luci")
    options = parser.parse_args()
    names = ("tarball", "packages", "luci")
    missing = [name.upper() for name in names if not getattr(options, name)]
    if missing:
        # What make hands over where nobody has said it.
        usage = "make upstream TARBALL= PACKAGES= LUCI="
        sys.exit(f"upstream: {' and '.join(missing)} missing: {usage}")
    for name in names:
        setattr(options, name, Path(getattr(options, name)))
    about = Makefile(DAEMON / "Makefile")
    complaint = wrong(options, about)
    if complaint:
        sys.exit(f"upstream: {complaint}")

    daemon = fresh(options.packages / "net/pemi")
    source = {
        "PKG_SOURCE": "$(PKG_NAME)-$(PKG_VERSION).tar.gz",
        "PKG_SOURCE_URL": about["PEMI_RELEASES"],
        "PKG_HASH": hashlib.sha256(options.tarball.read_bytes()).hexdigest(),
    }
    (daemon / "Makefile").write_text(of_the_daemon(about, source))
    for name in ("test.sh", "test.pcap.gz"):
        shutil.copy(DAEMON / name, daemon / name)

    collector = fresh(options.packages / f"utils/{COLLECTOR.name}")
    (collector / "Makefile").write_text(of_the_collector(Makefile(COLLECTOR / "Makefile")))
    shutil.copytree(COLLECTOR / "files", collector / "files")

    app = fresh(options.luci / f"applications/{APP.name}")
    (app / "Makefile").write_text(of_the_app(Makefile(APP / "Makefile")))
    for part in PARTS:
        shutil.copytree(APP / part, app / part)
    # Translations name the sources from the top of the tree.
    for po in [*app.glob("po/*/*.po"), *app.glob("po/*/*.pot")]:
        text = po.read_text().replace(f"#: {APP.name}/", f"#: applications/{APP.name}/")
        po.write_text(text)
    print(
        f"{daemon}\n{collector}\n{app}\nSee what has changed there, build it, sign off the commits."
    )


def wrong(options: argparse.Namespace, about: Makefile) -> str | None:
    """What there is against a pull request now."""
    name = f"pemi-{about['PKG_VERSION']}.tar.gz"
    if options.tarball.name != name:
        return f"{options.tarball}: the release that about.mk tells of is called {name}"
    if not options.tarball.is_file():
        return f"{options.tarball}: no such file; make tarball makes it from the last commit"
    for tree, part in ((options.packages, "lang/rust"), (options.luci, "luci.mk")):
        if not (tree / part).exists():
            return f"{tree} has no {part}: not the right checkout"
    placeholders = [
        name
        for name in ("PKG_MAINTAINER", "PEMI_URL", "PEMI_RELEASES")
        if re.search(r"\.example\b", about[name])
    ]
    if placeholders and not options.draft:
        found = ", ".join(placeholders)
        return f"package/about.mk: {found} is a placeholder; `make upstream DRAFT=1` goes on"
    return None


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def of_the_daemon(make: Makefile, source: dict[str, str]) -> str:
    text = re.sub(r"\A.*?^include \$\(TOPDIR\)", "include $(TOPDIR)", make.text, flags=re.S | re.M)
    text = HERE.sub("", text)
    said = _lines(make, ["PKG_VERSION", "PKG_RELEASE"])
    said += "\n" + "".join(f"{name}:={value}\n" for name, value in source.items())
    said += "\n" + _lines(make, ["PKG_MAINTAINER", "PKG_LICENSE"])
    text = text.replace("include ../about.mk\n", said)
    text = text.replace("$(PEMI_URL)", make["PEMI_URL"])
    text = text.replace("$(TOPDIR)/feeds/packages/lang/rust", "../../lang/rust")
    return _license(text)


def of_the_collector(make: Makefile) -> str:
    text = re.sub(r"\A.*?^include \$\(TOPDIR\)", "include $(TOPDIR)", make.text, flags=re.S | re.M)
    said = _lines(make, ["PKG_VERSION", "PKG_RELEASE", "PKG_MAINTAINER", "PKG_LICENSE"])
    text = text.replace("include ../about.mk\n", said)
    return _license(text.replace("$(PEMI_URL)", make["PEMI_URL"]))


def of_the_app(make: Makefile) -> str:
    text = re.sub(r"\A.*?^include \$\(TOPDIR\)", "include $(TOPDIR)", make.text, flags=re.S | re.M)
    said = _lines(make, ["PKG_VERSION", "PKG_RELEASE", "PKG_MAINTAINER", "PKG_LICENSE"])
    # Translations have the date of the tree's last change there, as all others.
    ours = r"include \.\./package/about\.mk\n(#.*\n)?PKG_PO_VERSION.*\n"
    text = re.sub(ours, lambda _: said, text)
    text = text.replace("$(PEMI_URL)", make["PEMI_URL"])
    text = text.replace("$(TOPDIR)/feeds/luci/luci.mk", "../../luci.mk")
    return _license(text)


def _license(text: str) -> str:
    return f"# SPDX-License-Identifier: GPL-2.0-or-later\n\n{text}"


def _lines(make: Makefile, names: list[str]) -> str:
    return "".join(f"{name}:={make[name]}\n" for name in names)


if __name__ == "__main__":
    main()
