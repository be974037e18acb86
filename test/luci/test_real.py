# SPDX-License-Identifier: GPL-2.0-or-later
"""The same pages in real LuCI on a rig (rig.sh), whose init is RIG; from inside its network.

The tests are a walk: each begins where the one before has left the router.
"""

import json
import os
import re
import subprocess
import time

import pytest
from conftest import SIZES, THEMES
from lab import Lab, Space
from po import LANGUAGES, catalog
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from test_overview import COLUMN, POINTS

pytestmark = pytest.mark.skipif("RIG" not in os.environ, reason="no real LuCI: RIG is not set")
SITE = "http://127.0.0.1/cgi-bin/luci/"
OVERVIEW, SETTINGS = "admin/services/pemi/overview", "admin/services/pemi/settings"
APPLY = ".cbi-page-actions .cbi-button-apply"


def on_router(*words: str) -> str:
    enter = ["nsenter", "-t", os.environ["RIG"], "-m", "-n", "-p", "-u", "-i", "-r", "-w"]
    command = [*enter, "env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *words]
    return subprocess.run(command, capture_output=True, text=True).stdout


def service() -> dict:
    return json.loads(on_router("ubus", "call", "rc", "list", '{"name":"pemi"}'))["pemi"]


class Luci:
    def __init__(self, browser):
        self.browser, self.user = browser, None

    def login(self, user: str) -> None:
        """Another user's pages are not to be had with this one's cookie."""
        if self.user == user:
            return
        browser = self.browser
        browser.driver.get("http://127.0.0.1/luci-static/bootstrap/cascade.css")
        browser.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        browser.open(SITE, "[name=luci_password]")
        # The theme moves the form into a dialogue.
        browser.until(browser.one("[name=luci_username]").is_displayed, "no form")
        browser.one("[name=luci_username]").clear()
        browser.one("[name=luci_username]").send_keys(user)
        secret = "rootpass" if user == "root" else "secret"
        browser.one("[name=luci_password]").send_keys(secret, Keys.ENTER)
        browser.one("#topmenu a")
        browser.problems()  # the form itself comes with 403
        self.user = user

    def open(self, path: str, ready: str, user="root", theme="light", width=1280, screen=None):
        self.login(user)
        self.browser.resize(width, screen=screen)
        self.browser.dark(theme == "dark")
        self.browser.open(SITE + path, ready)
        return self.browser


@pytest.fixture(scope="module")
def luci(browser):
    yield Luci(browser)
    browser.driver.get("about:blank")


@pytest.fixture(scope="module")
def lab():
    lab = Lab(Space(int(os.environ["RIG"])), lan="lan1")
    lab.serve()
    yield lab
    lab.close()


def test_menu(luci):
    browser = luci.open("admin/status/overview", "#topmenu a[href$='services/pemi']")
    links = [link.get_attribute("href") for link in browser.all("#topmenu a[href*='pemi']")]
    assert [link.rsplit("/", 1)[1] for link in links] == ["pemi"]
    # Off: no part on the status page.
    browser.one("#view .cbi-section")
    browser.says("Uptime")
    assert not any("PEMI" in section.text for section in browser.all("#view .cbi-section"))


def test_off(luci):
    for width in SIZES:
        for theme in THEMES:
            browser = luci.open(OVERVIEW, "[data-pemi-state='off']", theme=theme, width=width)
            browser.picture(f"real-overview-off-{width}-{theme}")
            assert browser.wider() == []
    assert browser.problems() == []


def test_wrong_value(luci):
    browser = luci.open(SETTINGS, "[data-field='cbid.pemi.main.cache_kib'] input")
    browser.click("li[data-tab='advanced'] a")
    box = browser.one("[data-field='cbid.pemi.main.cache_kib'] input")
    box.clear()
    box.send_keys("63", Keys.TAB)
    field = "[data-field='cbid.pemi.main.cache_kib'] [data-tooltip]"
    assert "64" in browser.one(field).get_attribute("data-tooltip")
    # LuCI shows it to who points at the field.
    ActionChains(browser.driver).move_to_element(browser.one(field)).perform()
    browser.picture("real-settings-wrong-1280-light")
    browser.click(APPLY)
    browser.one("body.modal-overlay-active")
    browser.picture("real-settings-refused-1280-light")


def test_switch_on(luci):
    browser = luci.open(SETTINGS, "[data-field='cbid.pemi.main.enabled'] input")
    box = browser.one("[data-field='cbid.pemi.main.enabled'] input[type=checkbox]")
    assert not box.is_selected()
    browser.run("arguments[0].click()", box)
    browser.click(APPLY)
    browser.until(lambda: service()["running"], "the daemon does not run")
    # The apply is confirmed: it would be undone otherwise.
    browser.until(lambda: not browser.all("body.modal-overlay-active"), "still applying")
    assert on_router("uci", "get", "pemi.main.enabled").strip() == "1"
    browser.problems()


def test_settings_look(luci):
    for tab in ("basic", "advanced", "sidekick"):
        for width in SIZES:
            for theme in THEMES:
                browser = luci.open(SETTINGS, f"li[data-tab='{tab}'] a", "root", theme, width)
                browser.click(f"li[data-tab='{tab}'] a")
                browser.picture(f"real-settings-{tab}-{width}-{theme}")
                assert browser.wider() == []
    assert browser.problems() == []


def test_idle(luci):
    # Where the kernel does not take the daemon's own rules (README), that comes first.
    browser = luci.open(OVERVIEW, "[data-pemi-state='idle'], [data-pemi-state='unruled']")
    browser.picture("real-overview-idle-1280-light")
    assert browser.problems() == []


def test_traffic_within_3_s(luci, lab):
    browser = luci.open(OVERVIEW, "[data-pemi-state]")
    lab.download(600_000_000)
    peak = (
        "const d = document.querySelector('.pemi-details svg[role=img] path')"
        ".getAttribute('d') ?? ''; const y = [...d.matchAll(/[ML]\\S+ (\\S+)/g)].map(m => +m[1]);"
        "return y.length ? Math.max(...y) - Math.min(...y) : 0"
    )
    # Until the daemon has counted it, there is nothing that could be shown.
    seen = '"quic": [1-9]'
    browser.until(
        lambda: on_router("sh", "-c", f"ubus call pemi status | grep '{seen}'"), "no traffic"
    )
    start = time.monotonic()
    browser.until(lambda: browser.run(peak) > 5, "nothing in the chart")
    took = time.monotonic() - start
    print(f"traffic in the chart after {took:.1f} s")
    assert took < 3
    browser.one("[data-pemi-state='running']")
    assert browser.problems() == []


def test_saving_changes_what_was_changed(luci):
    """LuCI's own forms take out of the file what is the default."""
    before = on_router("cat", "/etc/config/pemi")
    browser = luci.open(SETTINGS, "[data-field='cbid.pemi.main.resend_percent'] input")
    browser.click(".cbi-page-actions .cbi-button-save")
    browser.run_for(2, lambda: None)
    assert on_router("uci", "changes", "pemi") == ""
    browser.click("li[data-tab='advanced'] a")
    box = browser.one("[data-field='cbid.pemi.main.resend_percent'] input")
    box.clear()
    box.send_keys("11", Keys.TAB)
    browser.click(APPLY)
    changed = before.replace("resend_percent '10'", "resend_percent '11'")
    browser.until(lambda: on_router("cat", "/etc/config/pemi") == changed, "another file")
    browser.until(lambda: not browser.all("body.modal-overlay-active"), "still applying")


def test_save_without_losing_flows(luci, lab):
    pid = on_router("pidof", "pemi")
    browser = luci.open(SETTINGS, "[data-field='cbid.pemi.main.resend_percent'] input")
    browser.click("li[data-tab='advanced'] a")
    box = browser.one("[data-field='cbid.pemi.main.resend_percent'] input")
    box.clear()
    box.send_keys("12", Keys.TAB)
    browser.click(APPLY)
    browser.until(lambda: "12" in on_router("cat", "/var/etc/pemi/config.json"), "not reloaded")
    browser.until(lambda: not browser.all("body.modal-overlay-active"), "still applying")
    assert on_router("pidof", "pemi") == pid
    flows = json.loads(on_router("ubus", "call", "pemi", "flows"))["flows"]
    assert flows and flows[0]["age_s"] >= 3


def rated(browser) -> bool:
    """There are flows, and all have a rate: it comes with the second answer."""
    rates = browser.run(COLUMN, 4)
    return bool(rates) and all("bit/s" in text for text in rates)


def test_running(luci, lab):
    browser = luci.browser
    for width in SIZES:
        for theme in THEMES:
            luci.open(OVERVIEW, "[data-pemi-state='running']", "root", theme, width)
            browser.until(lambda: rated(browser), "no rate")
            assert max(browser.run(POINTS)[0]) > 3
            browser.picture(f"real-overview-running-{width}-{theme}")
            assert browser.wider() == []
            luci.open(
                "admin/status/overview",
                "#view .cbi-progressbar[title*='losses']",
                "root",
                theme,
                width,
            )
            browser.picture(f"real-widget-{width}-{theme}")
    assert browser.problems() == []


def test_narrow_window_on_a_desk(luci, lab):
    browser = luci.open(OVERVIEW, "#pemi-flows .td", width=360, screen=1920)
    assert not any(title.is_displayed() for title in browser.all("#view .table-titles"))
    Select(browser.one("#view .pemi-narrow select")).select_by_value("server")
    browser.one("#pemi-flows .th:nth-child(2)[aria-sort=ascending]")
    browser.picture("real-overview-narrow-1920-light")


@pytest.mark.parametrize("language", LANGUAGES)
def test_language(luci, lab, language):
    name = {"zh_Hans": "zh_cn"}.get(language, language)
    if not on_router("sh", "-c", f"ls /usr/lib/lua/luci/i18n/pemi.{name.replace('_', '-')}.lmo"):
        pytest.skip("LuCI's po2lmo could not be built (a C compiler and make are needed)")
    on_router("uci", "set", f"luci.main.lang={name}")
    on_router("uci", "commit", "luci")
    texts = catalog(language).texts
    try:
        for width in SIZES:
            browser = luci.open(OVERVIEW, "[data-pemi-state='running']", width=width)
            browser.says(texts["Connections with the most traffic"][0])
            browser.picture(f"real-overview-{language}-{width}-light")
            assert browser.wider() == []
            browser = luci.open(SETTINGS, "li[data-tab='advanced'] a", width=width)
            browser.says(texts["Networks"][0])
            browser.picture(f"real-settings-{language}-{width}-light")
            assert browser.wider() == []
        assert browser.problems() == []
    finally:
        on_router("uci", "set", "luci.main.lang=en")
        on_router("uci", "commit", "luci")


def test_reset(luci, lab):
    """The counters begin anew, and the sentence with them."""
    browser = luci.open(OVERVIEW, "[data-pemi-state='running']")
    on_router("ubus", "call", "pemi", "reset")
    begin = time.monotonic()
    since = re.compile(r"In the last (\d+) s it has ")
    sentence = "return document.querySelector('.pemi-sentence')?.innerText ?? ''"

    def anew() -> bool:
        # It is some seconds old: the page asks for one thing a second.
        found = since.match(browser.run(sentence))
        return bool(found) and int(found[1]) <= time.monotonic() - begin + 1

    browser.until(anew, "not of the reset")


def test_the_poll_costs_little(luci, lab):
    browser = luci.open(OVERVIEW, "[data-pemi-state='running']")
    count = (
        "return performance.getEntriesByType('resource').filter(e => /ubus/.test(e.name)).length"
    )
    size = (
        "return Math.max(...performance.getEntriesByType('resource')"
        ".filter(e => /ubus/.test(e.name)).map(e => e.decodedBodySize))"
    )
    browser.until(lambda: browser.run(count) > 3, "no polling")
    browser.run("performance.clearResourceTimings()")
    seen = browser.run_for(10, lambda: browser.run(count))
    print(f"{seen[-1]} requests in 10 s, the largest answer {browser.run(size)} bytes")
    assert 5 <= seen[-1] <= 11
    assert browser.run(size) <= 4096
    browser.hide(True)
    seen = browser.run_for(4, lambda: browser.run(count), settle=1.5)
    assert seen[0] == seen[-1]


def test_reader(luci, lab):
    """Sees, and changes nothing; that buttons are grey is the lesser half of it."""
    browser = luci.open(OVERVIEW, "[data-pemi-state='running']", user="reader")
    assert all(not button.is_enabled() for button in browser.all("[data-pemi-action]"))
    browser.picture("real-overview-reader-1280-light")
    codes = browser.driver.execute_async_script("""
      const done = arguments[arguments.length - 1];
      const tries = [['rc', 'init', {name: 'pemi', action: 'stop'}],
        ['file', 'exec', {command: '/etc/init.d/pemi', params: ['stop']}],
        ['uci', 'set', {config: 'pemi', section: 'main', values: {enabled: '0'}}],
        ['pemi', 'reset', {}], ['pemi', 'log', {level: 'debug'}],
        ['file', 'stat', {path: '/proc/net/netfilter/nfnetlink_queue'}], ['pemi', 'status', {}]];
      Promise.all(tries.map(([object, method, args]) => fetch('/ubus/', {method: 'POST',
        body: JSON.stringify({jsonrpc: '2.0', id: 1, method: 'call',
          params: [L.env.sessionid, object, method, args]})}).then(r => r.json())))
        .then(answers => done(answers.map(a => a.error ? a.error.code : a.result[0])));
    """)
    # rpcd's own objects are asked and refuse (6); for others uhttpd does.
    assert all(code in (6, -32002) for code in codes[:-2]), codes
    assert codes[-2:] == [0, 0]
    assert service()["running"]
    luci.open(SETTINGS, "[data-field='cbid.pemi.main.enabled'] input", user="reader")
    field = "[data-field='cbid.pemi.main.{}']".format
    browser.says("lan", field("network") + " li[display]")
    browser.says("443", field("port"))
    assert browser.all("#view .cbi-dynlist") == []
    browser.picture("real-settings-reader-1280-light")
    fields = browser.all("#view .cbi-value-field input[type=text]:not(.create-item-input)")
    assert fields and all(not field.is_enabled() for field in fields)
    assert browser.all("#view .cbi-dropdown") == browser.all("#view .cbi-dropdown[disabled]")
    assert all(not button.is_enabled() for button in browser.all(".cbi-page-actions button"))
    browser.problems()


def test_stranger(luci):
    browser = luci.open("admin/status/overview", "#topmenu a", user="stranger")
    assert browser.all("#topmenu a[href*='pemi']") == []
    browser.driver.get(SITE + OVERVIEW)
    assert browser.all("[data-pemi-state]") == []
    browser.picture("real-stranger-1280-light")
    browser.problems()


def test_buttons(luci):
    """What is stopped is said to be so, and nothing of the kernel, which has queues."""
    browser = luci.open(OVERVIEW, "[data-pemi-action='restart']")
    on_router("service", "pemi", "stop")
    browser.one("[data-pemi-state='stopped']")
    browser.picture("real-overview-stopped-1280-light")
    for press, then in (("restart", "off"), ("off", "on"), ("on", "off")):
        browser.click(f"[data-pemi-action='{press}']:not([disabled])")
        browser.one(f"[data-pemi-action='{then}']:not([disabled])")
    browser.one(", ".join(f"[data-pemi-state='{it}']" for it in ("idle", "running", "unruled")))
    assert service() == {"start": 95, "stop": 10, "enabled": True, "running": True}
    assert browser.problems() == []


def test_switch_off(luci):
    browser = luci.open(OVERVIEW, "[data-pemi-action='off']:not([disabled])")
    browser.click("[data-pemi-action='off']")
    browser.one("[data-pemi-state='off']")
    assert not service()["running"]
    assert on_router("uci", "get", "pemi.main.enabled").strip() == "0"
    assert browser.problems() == []
