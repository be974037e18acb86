# SPDX-License-Identifier: GPL-2.0-or-later
"""The app's translations, and the texts in its sources that they are of."""

import json
import re
from pathlib import Path

APP = Path(__file__).resolve().parents[2] / "luci-app-pemi"
LANGUAGES = sorted(path.parent.name for path in APP.glob("po/*/pemi.po"))
# _('…') and N_(n, '…', '…'); what a source says otherwise cannot be translated.
CALL = re.compile(r"\b_\(\s*('(?:[^'\\]|\\.)*')\s*\)")
PLURAL = re.compile(r"\bN_\([^']*?('(?:[^'\\]|\\.)*'),\s*'(?:[^'\\]|\\.)*'\s*\)")
ANY = re.compile(r"\b(?:_|N_)\(")


class Catalog:
    """A .po file: `texts` has the forms of each, several where it depends on a number."""

    def __init__(self, file: Path | None = None):
        self.texts: dict[str, list[str]] = {}
        self.language, self.plural, self.fuzzy = "en", "n != 1", False
        if not file:
            return
        text = file.read_text()
        self.fuzzy = "\n#, fuzzy" in text
        for block in text.split("\n\n"):
            lines = [line for line in block.splitlines() if not line.startswith("#")]
            joined = re.sub(r'"\n"', "", "\n".join(lines))
            said = dict(re.findall(r'^(\S+) (".*")$', joined, re.MULTILINE))
            if said:
                texts = {name: json.loads(value) for name, value in said.items()}
                self.texts[texts["msgid"]] = [
                    value for name, value in texts.items() if name.startswith("msgstr")
                ]
        (head,) = self.texts.pop("")
        self.language = re.search(r"Language: (\S+)", head + "Language: en")[1].replace("_", "-")
        if plural := re.search(r"plural=([^;]+);", head):
            self.plural = plural[1]


def catalog(language: str) -> Catalog:
    return Catalog(APP / f"po/{language}/pemi.po")


def template() -> Catalog:
    return Catalog(APP / "po/templates/pemi.pot")


def sources() -> set[str]:
    """Every text that the app's sources want translated."""
    found = set()
    for path in APP.glob("htdocs/**/*.js"):
        text = path.read_text()
        quoted = CALL.findall(text) + PLURAL.findall(text)
        assert len(quoted) == len(ANY.findall(text)), f"{path.name}: a text is not one literal"
        found |= {re.sub(r"\\(.)", r"\1", one[1:-1]) for one in quoted}
    for path in APP.glob("root/usr/share/luci/menu.d/*.json"):
        found |= {entry["title"] for entry in json.loads(path.read_text()).values()}
    for path in APP.glob("root/usr/share/rpcd/acl.d/*.json"):
        found |= {entry["description"] for entry in json.loads(path.read_text()).values()}
    return found
