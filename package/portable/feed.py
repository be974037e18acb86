#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Lays the packages out as a signed feed: feed.py PACKAGES KEYS OUT ARCH...

PACKAGES is where pack.py put them, KEYS what feed-key.sh made. OUT can be served by any
web server as it is, and what it held before is gone.
"""

import gzip
import html
import shutil
import sys
from pathlib import Path

import apk_index
import every
import meta
import opkg_index
import sign
from pack import EVERY, ROOT

# By the name of what is trusted: public keys have it on routers, too.
USIGN_KEY, USIGN_PUBLIC = "pemi.sec", "pemi.pub"
APK_KEY, APK_PUBLIC = "pemi.key", "pemi.pem"

README = """PEMI for OpenWrt: a feed of signed packages
{line}

On the router, with the address of this folder in place of FEED.

OpenWrt until 24.10 (opkg):

  wget -O /tmp/pemi.pub FEED/pemi.pub && opkg-key add /tmp/pemi.pub
  echo "src/gz pemi FEED/ipk/$(. /etc/openwrt_release; echo $DISTRIB_ARCH)" >>/etc/opkg/customfeeds.conf
  opkg update && opkg install luci-app-pemi

OpenWrt from 25.12 on (apk):

  wget -O /etc/apk/keys/pemi.pem FEED/pemi.pem
  echo "FEED/apk/$(apk --print-arch)/packages.adb" >>/etc/apk/repositories.d/customfeeds.list
  apk update && apk add luci-app-pemi

Translations are luci-i18n-pemi-de and luci-i18n-pemi-zh-cn. Without LuCI: pemi.
For Prometheus: prometheus-node-exporter-lua-pemi. For captures and measurements: pemi-tools.
It does nothing until it is switched on, in LuCI under Services > PEMI, or with
uci set pemi.main.enabled=1; uci commit pemi; service pemi restart

Version {version}, for {arches}.
Key of opkg's index: {usign}. {url}
"""  # noqa: E501 - lines that are copied as a whole
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>PEMI for OpenWrt</title>
<meta name="viewport" content="width=device-width">
<pre>{text}</pre>
<p>{folders}</p>
</html>
"""


def main() -> None:
    packages, keys, out = (Path(path) for path in sys.argv[1:4])
    arches = sys.argv[4:]
    if not arches:
        sys.exit(__doc__)
    fresh = out.with_name(out.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    for arch in arches:
        opkg_folder(packages, keys, fresh / "ipk" / arch, arch)
        apk_folder(packages, keys, fresh / "apk" / arch, arch)
    for name in (USIGN_PUBLIC, APK_PUBLIC):
        shutil.copyfile(keys / name, fresh / name)
    explain(fresh, arches)
    shutil.rmtree(out, ignore_errors=True)
    fresh.rename(out)
    print(f"{out}: for {', '.join(arches)}; serve it with any web server, see README.txt in it")


def opkg_folder(packages: Path, keys: Path, folder: Path, arch: str):
    """What one line `src/gz` of opkg's names."""
    folder.mkdir(parents=True)
    found = [
        shutil.copyfile(packages / name, folder / name)
        for name in _names("ipk", arch, "{name}_{version}_{arch}.ipk")
    ]
    index = folder / "Packages"
    index.write_bytes(opkg_index.write(found))
    (folder / "Packages.gz").write_bytes(gzip.compress(index.read_bytes(), 9, mtime=0))
    sign.signify(index, keys / USIGN_KEY)


def apk_folder(packages: Path, keys: Path, folder: Path, arch: str):
    """What one line of a list of apk's names."""
    folder.mkdir(parents=True)
    found = [
        shutil.copyfile(packages / name, folder / Path(name).name)
        for name in _names("apk", arch, "{arch}/{name}-{version}.apk")
    ]
    (folder / "packages.adb").write_bytes(apk_index.write(found, keys / APK_KEY))


def _names(kind: str, arch: str, form: str) -> list[str]:
    """Where pack.py put the packages of an architecture, those for every one with them."""
    makefile = ROOT / "package/pemi/Makefile"
    parts = [(meta.read(makefile), arch), (meta.read_tools(makefile), arch)]
    parts += [(about, EVERY[kind]) for about, _ in every.all_packages()]
    return [form.format(name=it.name, version=it.version, arch=of) for it, of in parts]


def explain(out: Path, arches: list[str]):
    """The page that people see, and the same as text."""
    about = meta.read(ROOT / "package/pemi/Makefile")
    text = README.format(
        line="=" * README.index("\n"),
        version=about.version,
        arches=", ".join(arches),
        usign=sign.signify_key_id(out / USIGN_PUBLIC),
        url=about.url,
    )
    (out / "README.txt").write_text(text)
    folders = [f'<a href="{kind}/{arch}/">{kind}/{arch}</a>' for kind in EVERY for arch in arches]
    page = PAGE.format(text=html.escape(text, quote=False), folders="\n".join(folders))
    (out / "index.html").write_text(page)


if __name__ == "__main__":
    main()
