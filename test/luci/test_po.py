# SPDX-License-Identifier: GPL-2.0-or-later
"""The translations are in step with the sources."""

import re

import pytest
from po import LANGUAGES, catalog, sources, template

# What String.format puts values into.
VALUE = re.compile(r"%(?:%|[-+0 ]*\d*(?:\.\d+)?[a-zA-Z])")


def test_languages():
    assert LANGUAGES == ["de", "zh_Hans"]


def test_the_template_has_what_the_sources_say():
    """It is made by LuCI's build/i18n-scan.pl, see luci-app-pemi/README.md."""
    assert sorted(template().texts) == sorted(sources())


@pytest.mark.parametrize("language", LANGUAGES)
def test_everything_is_translated(language):
    translated = catalog(language)
    assert not translated.fuzzy
    assert sorted(translated.texts) == sorted(template().texts)
    for text, forms in translated.texts.items():
        for form in forms:
            assert form, f"not translated: {text}"
            assert VALUE.findall(form) == VALUE.findall(text), f"other values: {text}"
