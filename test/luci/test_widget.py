# SPDX-License-Identifier: GPL-2.0-or-later
"""The part of Status > Overview: one line and a bar, nothing where there is nothing to say."""

import pytest
from conftest import SIZES, THEMES

PATH = "admin/status/overview"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", SIZES)
def test_running(page, width, theme):
    browser = page.open(PATH, "running", theme, width)
    assert "losses repaired" in browser.attribute("#view .cbi-progressbar", "title")
    assert len(browser.all("#view .tr")) == 1
    browser.picture(f"widget-running-{width}-{theme}")
    assert browser.wider() == []
    assert browser.problems() == []


@pytest.mark.parametrize("state", ["off", "crashed", "denied", "busy", "ancient"])
def test_silent(page, state):
    browser = page.open(PATH, state)
    assert not any(section.is_displayed() for section in browser.all("#view .cbi-section"))
    assert browser.problems() == []


@pytest.mark.parametrize("state", ["idle", "older", "many", "errors"])
def test_others(page, state):
    browser = page.open(PATH, state)
    browser.one("#view .cbi-progressbar")
    browser.picture(f"widget-{state}-1280-light")
    assert len(page.called("pemi")) <= 2
    assert browser.problems() == []
