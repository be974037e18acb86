# SPDX-License-Identifier: GPL-2.0-or-later
"""Services > PEMI > Overview in every state."""

import pytest
from conftest import SIZES, THEMES
from selenium.webdriver.support.ui import Select

PATH = "admin/services/pemi/overview"
# What each state is called by the page, and what it says in words.
SAYS = {
    "running": ("running", "losses that it noticed"),
    "idle": ("idle", "waits for traffic"),
    "noquic": ("noquic", "no QUIC yet"),
    "many": (None, "Running"),
    "errors": ("unruled", "helps nothing"),
    "off": ("off", "switched off"),
    "crashed": ("stopped", "libnetfilter-queue"),
    "noqueue": ("noqueue", "kmod-nft-queue"),
    "reset": ("running", "In the last 2 min it has repaired"),
    "sidekick": ("running", "losses that it noticed"),
    "full": ("running", "losses that it noticed"),
    "denied": ("denied", "permission"),
    "busy": ("timeout", "does not answer in time"),
    "older": ("running", "older than this page"),
    "meter": ("meter", "looks at the Wi-Fi"),
    "ancient": ("old", "older than this page"),
}
POINTS = """
return [...document.querySelectorAll('#view .pemi-chart')]
  .filter(one => one.style.display != 'none')
  .map(one => [...one.querySelectorAll('svg[role=img] path')].map(line =>
    (line.getAttribute('d') ?? '').split(/[\\sML]+(?=\\d)/).length));
"""
HEALTH = """
return [...document.querySelectorAll('#view table:not([id]) .tr')]
  .map(row => [...row.children].map(cell => cell.textContent));
"""
COLUMN = """
return [...document.querySelectorAll('#pemi-flows .tr:not(.table-titles)')]
  .map(row => row.children[arguments[0]].innerText);
"""


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("state", SAYS)
def test_state(page, state, width, theme):
    browser = page.open(PATH, state, theme, width)
    kind, words = SAYS[state]
    browser.until(lambda: words.lower() in browser.text().lower(), f"no {words!r}")
    if kind:
        assert browser.all(f"[data-pemi-state='{kind}']")
    # Who may not see it is not offered to switch it on.
    assert bool(browser.all("[data-pemi-action]")) == (state != "denied")
    if state in ("running", "older"):
        # The two minutes come in parts, one a second.
        browser.until(
            lambda: min(max(chart) for chart in browser.run(POINTS)[:3]) > 45, "no charts"
        )
    browser.picture(f"overview-{state}-{width}-{theme}")
    assert browser.wider() == []
    assert browser.problems() == []
    for trace in ("TypeError", "undefined", "NaN", "[object", "Infinity"):
        assert trace not in browser.text()


def test_charts_have_points_and_a_description(page):
    browser = page.open(PATH)
    browser.until(lambda: min(max(chart) for chart in browser.run(POINTS)) > 100, "no charts")
    labels = browser.run(
        "return [...document.querySelectorAll('.pemi-chart')]"
        ".filter(one => one.style.display != 'none')"
        ".map(one => one.querySelector('desc').textContent)"
    )
    assert len(labels) >= 4
    assert all(any(letter.isdigit() for letter in label) for label in labels)


@pytest.mark.parametrize(
    ("state", "words"),
    [("idle", "Nothing was measured yet"), ("older", "Not told by this")],
)
def test_a_chart_without_values_says_why(page, state, words):
    browser = page.open(PATH, state)
    browser.click(".pemi-details summary")
    browser.says(words, ".pemi-details .pemi-chart:last-of-type")


def test_charts_move_on(page):
    browser = page.open(PATH)
    line = "return document.querySelector('svg[role=img] path').getAttribute('d')"
    before = browser.run(line)
    browser.until(lambda: browser.run(line) != before, "the chart stands still")


def test_rates_come_from_two_answers(page):
    browser = page.open(PATH)
    browser.until(lambda: all("bit/s" in text for text in browser.run(COLUMN, 4)), "no rate")


@pytest.mark.parametrize(("state", "spoken"), [("running", "QUIC"), ("older", "-")])
def test_what_connections_speak(page, state, spoken):
    """An older daemon does not tell."""
    browser = page.open(PATH, state)
    browser.until(lambda: set(browser.run(COLUMN, 2)) == {spoken}, "no protocol")


def test_sorting(page):
    browser = page.open(PATH, "many")
    head = "#pemi-flows .table-titles .th:nth-child(2) a"
    browser.click(head)
    assert "ascending" in browser.attribute("#pemi-flows .th:nth-child(2)", "aria-sort")
    assert browser.run(COLUMN, 1) == sorted(browser.run(COLUMN, 1))
    browser.click("#pemi-flows .table-titles .th:nth-child(4) a")
    first = browser.run(COLUMN, 3)
    browser.click("#pemi-flows .table-titles .th:nth-child(4) a")
    assert browser.run(COLUMN, 3) == first[::-1] or len(set(first)) < len(first)
    assert browser.attribute("#pemi-flows .th:nth-child(2)", "aria-sort") == "none"


@pytest.mark.parametrize("state", ["running", "many", "off", "busy"])
def test_the_poll_costs_little(page, state):
    browser = page.open(PATH, state)
    browser.run(
        "window.turns = 0; document.addEventListener('poll-turn', () => window.turns += 1);"
    )
    start = len(page.router.calls)
    browser.until(lambda: len(page.router.calls) >= start + 6, "no polling")
    asked = len(page.router.calls) - start
    # The question of the turn before may have been under way.
    assert asked <= browser.run("return window.turns") + 1
    assert max(call[4] for call in page.called("pemi")) <= 4096


def test_a_hidden_page_asks_nothing(page):
    browser = page.open(PATH)
    start = len(page.router.calls)
    browser.until(lambda: len(page.router.calls) > start, "no polling")
    browser.hide(True)
    # What was under way may still come; then a poll of 5 s would have had its turn.
    count = browser.run_for(6, lambda: len(page.router.calls), settle=1)
    assert count[0] == count[-1]
    browser.hide(False)
    browser.until(lambda: len(page.router.calls) > count[-1], "no polling after it is seen again")
    assert browser.problems() == []


def test_it_comes_back(page):
    """The daemon goes and comes while the page is open."""
    browser = page.open(PATH)
    page.router.service["running"] = False
    browser.one("[data-pemi-state='stopped']")
    page.router.service["running"] = True
    browser.one("[data-pemi-state='running']")
    assert browser.problems() == []


def test_bridged_mode(page):
    browser = page.open(PATH, "bridged")
    assert dict(browser.run(HEALTH))["Mode"] == "Bridged"


def test_sidekick(page):
    browser = page.open(PATH, "sidekick")
    rows = dict(browser.run(HEALTH))
    assert rows["Sidekick sessions"] == "1,234, refused: 3"
    assert rows["Sidekick reports sent"] == "98,765, 5.7 MiB"
    assert rows["Losses found with Sidekick"] == "7,111"


@pytest.mark.parametrize("state", ["running", "older"])
def test_sidekick_is_not_mentioned_where_it_is_off(page, state):
    """Also by a daemon that knows nothing of it but its name."""
    browser = page.open(PATH, state)
    assert "Mode" in dict(browser.run(HEALTH))
    assert "Sidekick" not in browser.text()


def test_the_sentence_names_the_time_that_its_figures_are_of(page):
    """The counters begin anew with ubus's reset, the daemon's uptime does not."""
    browser = page.open(PATH, "reset")
    assert browser.text(".pemi-sentence").startswith("In the last 2 min it has repaired ")
    assert "1 d 1 h" in dict(browser.run(HEALTH))["Version, running for"]
    # One that does not tell it.
    browser = page.open(PATH, "older")
    assert browser.text(".pemi-sentence").startswith("So far it has repaired ")


def test_no_time_is_named_in_the_first_second(page):
    browser = page.open(PATH, "begun")
    assert browser.text(".pemi-sentence") == "So far it has noticed no loss on the Wi-Fi hop."


CLIENTS = """
return [...document.querySelectorAll('#pemi-clients .tr:not(.table-titles)')]
  .map(row => [...row.children].map(cell => cell.innerText.replace(/\\s+/g, ' ').trim()));
"""


def test_clients(page):
    """Who loses most comes first; each is told in words."""
    browser = page.open(PATH)
    browser.until(lambda: len(browser.run(CLIENTS)) == 8, "not all clients have come")
    rows = browser.run(CLIENTS)
    assert rows[0] == [
        "10.0.0.101 02:00:00:00:01:00",
        "2.4 GHz wlan0",
        "51 lost in the last minute; none of its connections is helped",
        "2.5 %",
        "watched",
        "-50 dBm",
        "0.0 %",
        "-",
        "0 / 0 / 0",
    ]
    assert rows[1][0] == "tablet 10.0.0.20"
    assert rows[2][7] == "7, dropped: 1,234"
    words = {row[0].split()[0]: row[2] for row in rows}
    assert words["tablet"] == "helping: 51 lost in the last minute, 53 repaired"
    assert words["10.0.0.10"] == "helping: at most 51 lost in the last minute, 0 repaired"
    assert words["laptop"] == "no help needed for 3 h 1 min: 0 of 1,234,567 packets lost"
    assert words["10.0.0.1"] == "this access point does not tell"
    assert words["10.0.0.2"].startswith("this access point counts attempts")
    assert words["10.0.0.3"] == "left 12 min ago"
    assert words["10.0.0.77"] == "on no radio of this router: its losses are inferred"
    gates = {row[0].split()[0]: row[4] for row in rows}
    assert (gates["tablet"], gates["laptop"], gates["10.0.0.77"]) == ("helped", "pass by", "helped")
    # One bar, of the last five minutes.
    bars = "return document.querySelector('.pemi-curve path').getAttribute('d')"
    assert browser.run(bars) == "M66 18 v-18.0h5 v18.0z"
    browser.picture("overview-clients-1280-light")
    assert browser.problems() == []


def test_clients_come_a_few_at_a_time(page):
    browser = page.open(PATH, "many")
    browser.until(lambda: len(browser.run(CLIENTS)) == 10, "the second answer has not come")
    browser.until(lambda: len(browser.run(CLIENTS)) == 15, "the third answer has not come")
    browser.until(lambda: len(browser.run(CLIENTS)) == 20, "the fourth answer has not come")
    browser.until(lambda: len(browser.run(CLIENTS)) == 23, "the last answer has not come")
    asked = page.called("pemi")
    assert {call[3].get("limit") for call in asked if call[2] == "clients"} == {5}


@pytest.mark.parametrize(
    ("state", "words"),
    [("idle", "No access point of this router"), ("noquic", "no Wi-Fi that can be asked")],
)
def test_why_there_are_no_clients(page, state, words):
    browser = page.open(PATH, state)
    browser.says(words, "#pemi-clients")


@pytest.mark.parametrize("state", ["older", "lookaway"])
def test_clients_are_not_mentioned_where_nobody_looks(page, state):
    """Also by a daemon that knows nothing of them."""
    browser = page.open(PATH, state)
    assert "Mode" in dict(browser.run(HEALTH))
    assert not browser.one("#pemi-clients").is_displayed()


def test_what_help_is_worth(page):
    browser = page.open(PATH, "helps")
    words = (
        "With help, downloads were 1.8 times as fast (1.5 to 2.2; 128 helped, 14 left alone)."
        " Of 128 with help 3 stood still for 200 ms or more, of 14 without 9: "
        "a difference of -62 percentage points (-81 to -36)."
    )
    browser.says(words, ".pemi-benefit")
    assert browser.one(".pemi-benefit").text == words, "one network needs no name"
    browser.picture("overview-helps-1280-light")
    browser = page.open(PATH, "stands", width=360)
    browser.says(
        "br-guest: Help is off: with it, downloads were 0.61 times as fast", ".pemi-benefit"
    )
    browser.says("It is tried again in 23 hours.", ".pemi-benefit")
    browser.says("Too few large downloads", ".pemi-benefit")
    browser.picture("overview-stands-360-light")
    assert browser.wider() == [] and browser.problems() == []
    # It is said once, and in the reader's language.
    assert browser.all(".alert-message") == []
    browser = page.open(PATH, "back")
    browser.says("PEMI runs, but stands back", "[data-pemi-state='back']")
    browser.says("Help is off: with it, downloads were 0.61 times as fast", ".pemi-benefit")
    assert browser.all(".alert-message") == []
    browser.picture("overview-back-1280-light")


@pytest.mark.parametrize("state", ["older", "running", "meter"])
def test_nothing_is_said_of_it_where_nothing_is_compared(page, state):
    browser = page.open(PATH, state)
    assert "Mode" in dict(browser.run(HEALTH))
    assert browser.one(".pemi-benefit").text == ""


def test_wifi_is_looked_at_though_nobody_is_helped(page):
    browser = page.open(PATH, "meter")
    browser.one("[data-pemi-state='meter']")
    browser.until(lambda: len(browser.run(CLIENTS)) == 8, "not all clients have come")
    assert "help is switched off" in browser.run(CLIENTS)[0][2]
    assert "Losses on the Wi-Fi" not in browser.text()
    assert offered(browser) == ["on"]
    assert browser.problems() == []


def test_a_kernel_without_queues(page):
    browser = page.open(PATH, "noqueue")
    browser.one("[data-pemi-state='noqueue']")
    assert browser.all("#view a[href$='/admin/system/package-manager']")
    # The package was installed: the page notices by itself, and start is offered.
    page.router.options = {**page.router.options, "noqueue": False}
    browser.one("[data-pemi-state='stopped']")
    assert browser.one("[data-pemi-action='restart']").text == "Start"
    browser.click("[data-pemi-action='restart']")
    browser.one("[data-pemi-state='idle']")
    assert browser.problems() == []


@pytest.mark.parametrize("screen", [360, 1920])
def test_a_narrow_window(page, screen):
    """On a telephone and on a desk: rows become blocks whose cells have names, and no titles stand
    above; what sorts is a choice."""
    browser = page.open(PATH, "many", width=360, screen=screen)
    assert browser.run("return screen.width") == screen
    assert not any(title.is_displayed() for title in browser.all("#view .table-titles"))
    choice = Select(browser.one("#view .pemi-narrow select"))
    assert choice.first_selected_option.text == "Download rate"
    choice.select_by_value("server")
    assert browser.run(COLUMN, 1) == sorted(browser.run(COLUMN, 1))
    choice.select_by_value("age")
    label = (
        "const cell = document.querySelector(`#pemi-flows .td:nth-child(${arguments[0]})`);"
        "return getComputedStyle(cell, '::before').content"
    )
    assert [browser.run(label, at) for at in (1, 2)] == ["none", '"Server"']
    hidden = (
        "const frame = document.querySelector('#pemi-flows').parentNode;"
        "return frame.scrollWidth - frame.clientWidth"
    )
    assert browser.run(hidden) <= 1
    browser.picture(f"overview-narrow-{screen}-light")
    assert browser.wider() == []


def test_buttons(page):
    browser = page.open(PATH, "off")
    browser.click("[data-pemi-action='on']")
    browser.one("[data-pemi-state='idle']")
    assert [call[3]["params"] for call in page.called("file", "exec")] == [["enable"], ["start"]]
    assert page.router.committed["pemi"]["main"]["enabled"] == "1"
    assert offered(browser) == ["restart", "off"]
    browser.click("[data-pemi-action='restart']:not([disabled])")
    restarted = [["enable"], ["start"], ["restart"]]
    browser.until(
        lambda: [call[3]["params"] for call in page.called("file", "exec")] == restarted, "not done"
    )
    browser.click("[data-pemi-action='off']:not([disabled])")
    browser.one("[data-pemi-state='off']")
    assert page.router.committed["pemi"]["main"]["enabled"] == "0"
    assert browser.problems() == []


def offered(browser) -> list[str]:
    return browser.run(
        "return [...document.querySelectorAll('[data-pemi-action]')]"
        ".map(one => one.dataset.pemiAction)"
    )


def test_one_switch(page):
    """On is at every boot; where somebody has disabled that, switching on is offered."""
    browser = page.open(PATH, "running")
    page.router.service["enabled"] = False
    browser.driver.refresh()
    browser.says("after the next boot it is off")
    browser.picture("overview-noboot-1280-light")
    assert offered(browser) == ["on", "restart", "off"]
    browser.click("[data-pemi-action='on']:not([disabled])")
    browser.until(lambda: offered(browser) == ["restart", "off"], "not switched on")
    assert page.router.service["enabled"]
    assert browser.problems() == []


def test_buttons_although_nothing_is_said_of_the_service(page):
    browser = page.open(PATH, "hurried")
    browser.one("[data-pemi-state='running']")
    assert offered(browser) == ["restart", "off"]
    assert "boot" not in browser.text()


def colour(browser, kind: str) -> str:
    badge = f"[data-pemi-state='{kind}'] .label"
    return browser.run(
        "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor", badge
    )


def test_off_and_on_are_of_different_colours(page):
    shown = {kind: colour(page.open(PATH, kind), kind) for kind in ("off", "meter", "running")}
    assert shown["off"] == shown["meter"] != shown["running"]
    assert page.browser.attribute("[data-pemi-state='running'] .label", "class") == "label success"


ORDER = """
return [...document.querySelectorAll(
  '.pemi-benefit, .pemi-sentence, .pemi-chart, #pemi-clients, #pemi-flows, .pemi-details')]
  .filter(node => node.style.display != 'none')
  .map(node => node.id || node.className.split(' ').pop());
"""


def test_what_it_does_comes_first_and_details_are_folded_away(page):
    browser = page.open(PATH, "helps")
    assert browser.run(ORDER)[:6] == [
        *("pemi-benefit", "pemi-sentence", "pemi-chart", "pemi-clients", "pemi-flows"),
        "pemi-details",
    ]
    assert not browser.run("return document.querySelector('.pemi-details').open")
    assert browser.all(".pemi-details table")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", SIZES)
def test_what_is_as_it_should_be_is_no_alarm(page, width, theme):
    browser = page.open(PATH, "full", theme, width)
    browser.click(".pemi-details summary")
    rows = dict(browser.run(HEALTH))
    assert rows["Memory for copies"].endswith(": full, as it should be; the oldest make room")
    assert rows["Does the router keep up?"] == "Yes"
    assert "the limit of copies kept back 2,231 more" in rows["Packets sent again"]
    held = rows["Replies that waited until a loss was repaired"]
    assert held == "1,234; 152 of them as long as they may"
    assert browser.all(".cbi-progressbar, .alert-message") == []
    browser.picture(f"overview-details-{width}-{theme}")
    assert browser.wider() == [] and browser.problems() == []


def test_a_router_that_does_not_keep_up(page):
    browser = page.open(PATH, "slow")
    said = dict(browser.run(HEALTH))["Does the router keep up?"]
    assert said == "No: 1,234 packets passed unhelped, 0 were lost"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize(("span", "parts"), [("day", 144), ("week", 168)])
def test_days(page, span, parts, width, theme):
    """A few parts at a time, and all in the end; then nothing for a minute."""
    browser = page.open(PATH, "running", theme, width)
    browser.click(f"[data-pemi-span='{span}']")
    browser.until(lambda: len(page.called("pemi", "trend")) >= 3, "not all was asked")
    browser.until(lambda: max(browser.run(POINTS)[0]) > parts * 0.7, "not all is drawn")
    asked = page.called("pemi", "trend")
    assert [call[3]["skip"] for call in asked] == [0, 56, 112]
    assert {call[3]["span"] for call in asked} == {span}
    assert max(call[4] for call in asked) <= 4096
    assert browser.attribute(f"[data-pemi-span='{span}']", "aria-pressed") == "true"
    browser.click(".pemi-details summary")
    browser.picture(f"overview-{span}-{width}-{theme}")
    for trace in ("undefined", "NaN", "Infinity"):
        assert trace not in browser.text()
    assert browser.wider() == [] and browser.problems() == []


@pytest.mark.parametrize(
    ("state", "words"),
    [("older", "Not told by this version"), ("new", "Collecting data")],
)
def test_days_of_which_nothing_is_known(page, state, words):
    browser = page.open(PATH, state)
    browser.click("[data-pemi-span='week']")
    browser.says(words)
    assert browser.problems() == []


def test_reading_only(page):
    browser = page.open(PATH, "readonly")
    browser.one("[data-pemi-state='running']")
    buttons = browser.all("[data-pemi-action]")
    assert all(not button.is_enabled() for button in buttons)
    assert page.called("file", "exec") == []
