# SPDX-License-Identifier: GPL-2.0-or-later
"""Services > PEMI > Settings: what is wrong is said at the field, what is right is written."""

from pathlib import Path

import pytest
from conftest import SIZES, THEMES
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

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
    for tab in ("advanced", "sidekick"):
        if not box.is_displayed():
            browser.click(f"[data-tab='{tab}'] a")
    box.clear()
    box.send_keys(text, Keys.TAB)
    return field


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("tab", ["basic", "advanced", "sidekick"])
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


def written(page) -> list[tuple]:
    """What was asked of uci: section, options with their values, those that went."""
    calls = [call for call in page.called("uci") if call[2] in ("add", "set", "delete")]
    return [(call[3]["section"], call[3].get("values", call[3].get("options"))) for call in calls]


SHIPPED = Path(__file__).resolve().parents[2] / "files/etc/config/pemi"


def shipped() -> dict:
    """The configuration of the package, whose options have their defaults."""
    sections, lines = {}, SHIPPED.read_text().splitlines()
    for words in filter(None, (line.replace("'", "").split() for line in lines)):
        if words[0] == "config":
            section = sections[words[2]] = {"type": words[1]}
        elif words[0] == "option":
            section[words[1]] = words[2]
        else:
            section.setdefault(words[1], []).append(words[2])
    return sections


EDITED = {
    "main": {"type": "pemi", "enabled": "on", "mode": "bridged", "network": ["guest", "lan"]}
    | {
        "port": "443 8443",
        "device": "eth1 br-lan",
        "conceal": "yes",
        "benefit": "/mnt/usb/pemi/benefit",
        "radio": "off",
    },
    "sidekick": {"type": "sidekick", "enabled": "off"},
}


@pytest.mark.parametrize(
    ("option", "change", "value"),
    [
        ("log_level", "debug", "debug"),
        ("mode", "bridged", "bridged"),
        ("cache_kib", "8192", "8192"),
        ("conceal", "click", "0"),
        ("benefit", "/etc/pemi/benefit", "/etc/pemi/benefit"),
        ("run_as_root", "click", "1"),
        ("resend_total_percent", "40", "40"),
    ],
)
@pytest.mark.parametrize("file", ["shipped", "edited", "least"])
def test_saving_changes_what_was_changed(page, file, option, change, value):
    """And nothing that is the default, or is written in another way."""
    least = {"main": {"type": "pemi", "enabled": "1"}}
    before = {"shipped": shipped(), "edited": EDITED, "least": least}[file]
    browser = page.open(PATH, config=before)
    field = FIELD.format("main", option)
    if not browser.one(f"{field} select, {field} input").is_displayed():
        browser.click("li[data-tab='advanced'] a")
    if change == "click":
        browser.click(f"{field} input[type=checkbox]")
    elif browser.all(f"{field} select"):
        Select(browser.one(f"{field} select")).select_by_value(change)
    else:
        fill(browser, "main", option, change)
    browser.click(".cbi-page-actions .cbi-button-apply")
    same = before["main"].get(option) == value
    wanted = [] if same else [("main", {option: value})]
    browser.until(lambda: len(page.called("uci", "apply")) == 1, "not applied")
    assert written(page) == wanted
    after = {**before, "main": {**before["main"], option: value}}
    assert page.router.committed["pemi"] == after
    assert browser.problems() == []


@pytest.mark.parametrize("file", ["shipped", "edited"])
def test_saving_what_nobody_changed_changes_nothing(page, file):
    browser = page.open(PATH, config=shipped() if file == "shipped" else EDITED)
    browser.click(".cbi-page-actions .cbi-button-save")
    browser.run_for(1, lambda: None)
    assert written(page) == [] and page.router.staged == {}
    # What the file says in another way is shown.
    if file == "edited":
        assert browser.one(f"{FIELD.format('main', 'enabled')} input[type=checkbox]").is_selected()
        chosen = Select(browser.one(f"{FIELD.format('main', 'benefit')} select"))
        assert chosen.first_selected_option.get_attribute("value") == "/mnt/usb/pemi/benefit"


def test_back_to_the_default(page):
    """Where an empty choice means it the option goes, otherwise it is written."""
    browser = page.open(PATH, config=EDITED)
    Select(browser.one(f"{FIELD.format('main', 'mode')} select")).select_by_value("routed")
    browser.click("li[data-tab='advanced'] a")
    Select(browser.one(f"{FIELD.format('main', 'benefit')} select")).select_by_value("")
    browser.click(".cbi-page-actions .cbi-button-apply")
    browser.until(lambda: page.called("uci", "confirm"), "not applied")
    assert written(page) == [("main", {"mode": "routed"}), ("main", ["benefit"])]


def test_what_is_wrong_beside_what_was_changed(page):
    """The number of the first queue was right for one queue."""
    main = {"type": "pemi", "enabled": "1", "queue": "65535"}
    browser = page.open(PATH, config={"main": main})
    fill(browser, "main", "queues", "4")
    browser.click(".cbi-page-actions .cbi-button-apply")
    browser.one("body.modal-overlay-active")
    assert written(page) == []


def test_switching_on_is_at_every_boot(page):
    """Also where somebody has disabled the service."""
    browser = page.open(PATH, "off")
    page.router.service["enabled"] = False
    browser.driver.refresh()
    browser.click(f"{FIELD.format('main', 'enabled')} input[type=checkbox]")
    browser.click(".cbi-page-actions .cbi-button-apply")
    browser.until(lambda: page.called("uci", "confirm"), "not applied")
    assert [call[3]["params"] for call in page.called("file", "exec")] == [["enable"]]
    assert page.router.service == {"start": 95, "stop": 10, "enabled": True, "running": True}


@pytest.mark.parametrize("interval", ["4p", "10ms", "adaptive"])
def test_sidekick(page, interval):
    browser = page.open(PATH)
    browser.click("li[data-tab='sidekick'] a")
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
