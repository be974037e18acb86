# SPDX-License-Identifier: GPL-2.0-or-later
"""The packages for every processor: of the LuCI app, of its translations, of the collector."""

import base64
import struct
import subprocess
from pathlib import Path

import apk
import every
import feeds
import ipk
import lmo
import luci
import packages
import pytest

APP = Path(__file__).resolve().parents[2] / "luci-app-pemi"
FOUND = {about.name: (about, files) for about, files in every.all_packages()}

PO = r"""msgid ""
msgstr ""
"Language: de\n"
"Plural-Forms: nplurals=2; plural=n != 1;\n"

#: a.js:1
msgid "Off"
msgstr "Aus"

msgid "OK"
msgstr "OK"

msgid "a \"quoted\" \\ and\n"
msgstr ""
"ein „zitiertes“ "
"\"Wort\" \\ und\n"

msgctxt "verb"
msgid "Help"
msgstr "Helfen"

msgid "%d flow"
msgid_plural "%d flows"
msgstr[0] "%d Verbindung"
msgstr[1] "%d Verbindungen"

msgid "Not translated"
msgstr ""
""".encode()
# What LuCI's po2lmo makes of it
LMO = base64.b64decode(
    """
bnBsdXJhbHM9MjsgcGx1cmFsPW4gIT0gMTsAAEF1cwBlaW4g4oCeeml0aWVydGVz4oCcICJXb3J0IiBcIHVuZFxu
AABIZWxmZW4AACVkIFZlcmJpbmR1bmcAAAAlZCBWZXJiaW5kdW5nZW4AAAAAAAAAAAAAAAAAAAAAGgnTbRUAAAAC
AAAAXAAAAA9GvwmMAAAAAQAAABwAAAADVeotugAAAAEAAAAgAAAAIloa7ygAAAABAAAARAAAAAbK7QWDAAAAAgAA
AEwAAAANAAAAbA==
"""
)


def test_a_translation_is_as_luci_makes_it():
    assert lmo.convert(PO) == LMO


def test_nothing_translated_is_no_file():
    assert lmo.convert(b'msgid "a"\nmsgstr ""\n') == b""


def test_what_luci_would_misread_is_refused():
    long = b'msgid "' + b"a" * 5000 + b'"\nmsgstr "b"\n'
    with pytest.raises(lmo.NotConvertible, match="wrap it"):
        lmo.convert(long)


def texts(data: bytes) -> dict[int, tuple[int, str]]:
    """Of an .lmo file, by the hash of what each is a translation of."""
    (start,) = struct.unpack_from(">I", data, len(data) - 4)
    found = {}
    for key, forms, place, length in struct.iter_unpack(">4I", data[start:-4]):
        assert place % 4 == 0 and place + length <= start
        found[key] = (forms, data[place : place + length].decode())
    assert list(found) == sorted(found), "the router searches by halves"
    return found


@pytest.mark.parametrize("code", ["de", "zh-cn"])
def test_translations_are_found_where_luci_looks(code):
    about, files = FOUND[f"luci-i18n-pemi-{code}"]
    named = {str(file.path): file.data for file in files}
    found = texts(named[f"usr/lib/lua/luci/i18n/pemi.{code}.lmo"])
    assert found[lmo.hashed(b"Settings")][1] in ("Einstellungen", "设置")
    assert "plural=" in found[0][1]
    listed = named[f"etc/uci-defaults/{about.name}"].decode()
    assert listed.startswith(f"uci set luci.languages.{code.replace('-', '_')}='")
    assert about.depends == ["libc", "luci-app-pemi"]


def test_the_app_has_its_pages_menu_and_rights():
    about, files = FOUND["luci-app-pemi"]
    wanted = {f"www/{path.relative_to(APP / 'htdocs')}" for path in APP.glob("htdocs/**/*.js")}
    wanted |= {str(path.relative_to(APP / "root")) for path in APP.glob("root/**/*.json")}
    assert {str(file.path) for file in files} == wanted
    assert about.depends == ["libc", "luci-base", "pemi"]
    assert (about.version, about.maintainer, about.url) == (
        *(feeds.ABOUT.version, feeds.ABOUT.maintainer),
        feeds.ABOUT.url,
    )


def test_the_collector_is_where_the_exporter_looks():
    about, files = FOUND["prometheus-node-exporter-lua-pemi"]
    assert [str(file.path) for file in files] == ["usr/lib/lua/prometheus-collectors/pemi.lua"]
    assert about.depends == ["libc", "prometheus-node-exporter-lua", "libubus-lua", "pemi"]
    assert (about.section, about.maintainer) == ("utils", feeds.ABOUT.maintainer)


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("kind", ["ipk", "apk"])
def test_packages_are_for_every_processor(name, kind, tmp_path):
    about, files = FOUND[name]
    path = tmp_path / f"package.{kind}"
    if kind == "ipk":
        path.write_bytes(ipk.write(about, "all", files, feeds.TIME))
        package = packages.read_ipk(path)
        assert package.scripts.get("postinst-pkg", "") == about.postinst
        assert "Require-User" not in package.fields
    else:
        path.write_bytes(apk.write(about, "noarch", files, feeds.TIME))
        package = packages.read_apk(path)
        assert package.scripts["post-install"].endswith(f"\ndefault_postinst\n{about.postinst}")
        assert package.scripts["post-upgrade"].endswith(f"\ndefault_postinst\n{about.postinst}")
    assert package.fields["Architecture"] == {"ipk": "all", "apk": "noarch"}[kind]
    assert package.fields["Package"] == name
    assert {str(file.path) for file in files} <= set(package.files())
    assert path.stat().st_size < 64 * 1024


def test_the_script_does_nothing_where_an_image_is_made():
    script = luci.POSTINST
    done = subprocess.run(["/bin/sh", "-c", script], env={"IPKG_INSTROOT": "/nowhere", "PATH": ""})
    assert done.returncode == 0


def test_the_sdk_gives_translations_the_same_version():
    assert "PKG_PO_VERSION:=$(PKG_VERSION)-r$(PKG_RELEASE)" in (APP / "Makefile").read_text()
