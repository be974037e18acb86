# SPDX-License-Identifier: GPL-2.0-or-later
"""Services > PEMI > Settings: what is wrong is said at the field, what is right is written."""

import pytest
from conftest import SIZES, THEMES
from selenium.webdriver.common.keys import Keys

PATH = "admin/services/pemi/settings"
FIELD = "[data-field='cbid.pemi.{}.{}']"
WRONG = [
    ("main", "cache_kib", "63"),
    ("main", "cache_kib", "4 MiB"),
    ("main", "max_flows", "70000"),
    ("main", "resend_percent", "101"),
    ("main", "queues", "9"),
    ("main", "mark", "0x10000000"),
    ("main", "bypass_mark", "0"),
    ("main", "realtime_priority", "99"),
    ("sidekick", "port", "0"),
    ("sidekick", "interval", "10s"),
    ("sidekick", "interval", "1001p"),
    ("sidekick", "interval", "Adaptive"),
    ("sidekick", "threshold", "65"),
    ("main", "port", "65536"),
]


def fill(browser, section: str, option: str, text: str):
    field = FIELD.format(section, option)
    box = browser.one(f"{field} input")
    if not box.is_displayed():
        browser.click("[data-tab='advanced'] a")
    box.clear()
    box.send_keys(text, Keys.TAB)
    return field


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("tab", ["basic", "advanced"])
def test_looks(page, tab, width, theme):
    browser = page.open(PATH, "running", theme, width)
    browser.click(f"li[data-tab='{tab}'] a")
    browser.picture(f"settings-{tab}-{width}-{theme}")
    assert browser.wider() == []
    assert browser.problems() == []


@pytest.mark.parametrize("state", ["denied", "errors", "offloading", "off"])
def test_state(page, state):
    browser = page.open(PATH, state)
    browser.picture(f"settings-{state}-1280-light")
    assert browser.run("return document.documentElement.dataset.ready") == "view"
    assert bool(browser.all(".alert-message")) == (state != "off")
    assert browser.problems() == []


@pytest.mark.parametrize(("section", "option", "text"), WRONG)
def test_wrong(page, section, option, text):
    browser = page.open(PATH)
    field = fill(browser, section, option, text)
    said = browser.attribute(f"{field} [data-tooltip]", "data-tooltip")
    assert said.startswith("Allowed: ")
    browser.click(".cbi-page-actions .cbi-button-apply")
    browser.one("body.modal-overlay-active")
    assert [call[2] for call in page.called("uci") if call[2] not in ("get", "changes")] == []


def test_right_after_wrong(page):
    browser = page.open(PATH)
    field = fill(browser, "main", "cache_kib", "63")
    browser.one(f"{field} [data-tooltip]")
    browser.picture("settings-wrong-1280-light")
    fill(browser, "main", "cache_kib", "8192")
    browser.until(lambda: not browser.all(f"{field} [data-tooltip]"), "still said to be wrong")


def test_save_and_apply(page):
    browser = page.open(PATH)
    fill(browser, "main", "cache_kib", "8192")
    browser.click(".cbi-page-actions .cbi-button-apply")
    browser.until(lambda: page.called("uci", "confirm"), "not applied")
    assert page.router.committed["pemi"]["main"]["cache_kib"] == "8192"
    # Nothing that was not touched, and no restart: procd reloads it.
    assert page.router.committed["pemi"]["main"]["network"] == ["lan"]
    assert page.called("file", "exec") == []
    fill(browser, "main", "cache_kib", "")
    browser.click(".cbi-page-actions .cbi-button-apply:not([disabled])")
    browser.until(lambda: len(page.called("uci", "confirm")) == 2, "not applied")
    assert "cache_kib" not in page.router.committed["pemi"]["main"]
    assert browser.problems() == []


def test_switching_on(page):
    browser = page.open(PATH, "off")
    browser.click(f"{FIELD.format('main', 'enabled')} input[type=checkbox]")
    browser.click(".cbi-page-actions .cbi-button-apply")
    browser.until(lambda: page.called("uci", "confirm"), "not applied")
    assert page.router.committed["pemi"]["main"]["enabled"] == "1"
    assert page.router.service["running"]


@pytest.mark.parametrize("interval", ["4p", "10ms", "adaptive"])
def test_sidekick(page, interval):
    browser = page.open(PATH)
    switch = browser.one(f"{FIELD.format('sidekick', 'enabled')} input[type=checkbox]")
    assert not switch.is_selected()
    browser.click(f"{FIELD.format('sidekick', 'enabled')} input[type=checkbox]")
    assert (
        browser.attribute(f"{FIELD.format('sidekick', 'interval')} input", "placeholder")
        == "adaptive"
    )
    for option, text in (("port", "5104"), ("interval", interval), ("threshold", "16")):
        fill(browser, "sidekick", option, text)
    browser.picture(f"settings-sidekick-{interval}-1280-light")
    browser.click(".cbi-page-actions .cbi-button-apply")
    browser.until(lambda: page.called("uci", "confirm"), "not applied")
    written = page.router.committed["pemi"]["sidekick"]
    wanted = {"enabled": "1", "port": "5104", "interval": interval, "threshold": "16"}
    assert written == {"type": "sidekick", **wanted}
    assert page.router.committed["pemi"]["main"]["enabled"] == "1"
    assert browser.problems() == []


def test_reading_only(page):
    browser = page.open(PATH, "readonly")
    assert all(not button.is_enabled() for button in browser.all(".cbi-page-actions button"))
    assert all(not field.is_enabled() for field in browser.all("#view input, #view select"))
    # A list is text then, without what would add and remove.
    assert browser.one(FIELD.format("main", "port")).text.splitlines()[1] == "443"
    assert browser.all("#view .cbi-dynlist") == []
    browser.picture("settings-readonly-1280-light")
