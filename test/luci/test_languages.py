# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages in other languages: nothing stays English, nothing gets too wide."""

import re

import pytest
from conftest import SIZES
from po import LANGUAGES, catalog

PAGES = {
    "overview": ("admin/services/pemi/overview", ["running", "errors", "sidekick", "noqueue"]),
    "settings": ("admin/services/pemi/settings", ["offloading"]),
    "widget": ("admin/status/overview", ["running"]),
}
# All that can be read: text, what is shown at the pointer, in empty fields and to screen readers.
READ = """
const root = document.querySelector('#maincontent');
const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
const said = [];
while (walker.nextNode())
  said.push(walker.currentNode.data.trim());
for (const node of root.querySelectorAll('[title], [placeholder], [data-title]'))
  for (const name of ['title', 'placeholder', 'data-title'])
    said.push(node.getAttribute(name) ?? '');
return said.filter(Boolean);
"""


def pattern(text: str) -> re.Pattern:
    """Finds a text whatever its values are."""
    parts = re.split(r"(%%|%[ds])", text)
    values = {"%%": "%", "%d": r"\d+", "%s": ".+"}
    return re.compile("".join(values.get(part, re.escape(part)) for part in parts))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("name", "state"), [(name, state) for name, (_, states) in PAGES.items() for state in states]
)
def test_page(page, language, name, state):
    translations = catalog(language)
    page.site.catalog = translations
    for width in SIZES:
        browser = page.open(PAGES[name][0], state, "light", width)
        for tab in browser.all("#view li[data-tab]"):
            tab.click()
            kind = tab.get_attribute("data-tab")
            browser.picture(f"{language}-{name}-{kind}-{width}-light")
            assert browser.wider() == []
        if name != "settings":
            browser.picture(f"{language}-{name}-{state}-{width}-light")
        assert browser.wider() == []
        said = browser.run(READ)
        ours = {text: forms for text, forms in translations.texts.items() if text not in forms}
        for text in ours:
            assert not [one for one in said if pattern(text).fullmatch(one)], text
        shown = [form for forms in ours.values() for form in forms]
        assert [one for one in said if any(pattern(form).fullmatch(one) for form in shown)]
        assert browser.problems() == []
