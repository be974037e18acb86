# SPDX-License-Identifier: GPL-2.0-or-later
"""Headless Chromium, and what all tests ask of a page."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

OUT = Path(__file__).resolve().parents[2] / "out/luci"
PATIENCE = 15
# The browser is to ask nobody but the server of the test.
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
    " --disable-background-networking --disable-component-update --hide-scrollbars"
)
# Chromium's windows have a least width; frames of pages and their text do not.
WIDER = """
const width = document.documentElement.clientWidth;
return [...document.querySelectorAll('body *')].filter(node => {
  if (!node.getClientRects().length || node.closest('svg')) return false;
  for (let at = node.parentElement; at; at = at.parentElement)
    if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(at).overflowX)) return false;
  return node.getBoundingClientRect().right > width + 1;
}).map(node => `${node.tagName}.${node.className}: ${node.textContent.slice(0, 40)}`);
"""

# Until nothing fades or moves any more, but for what does so for ever.
STILL = """
const done = arguments[arguments.length - 1];
const moving = () => document.getAnimations()
  .filter(one => one.effect.getComputedTiming().endTime != Infinity)
  .map(one => one.finished.catch(() => null));
const settle = () => requestAnimationFrame(() => {
  const rest = moving();
  rest.length ? Promise.all(rest).then(settle) : done();
});
settle();
"""


class Browser:
    def __init__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        self.profile = tempfile.TemporaryDirectory()
        for flag in [*QUIET.split(), f"--user-data-dir={self.profile.name}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = Service(os.environ.get("CHROMEDRIVER", "/usr/bin/chromedriver"))
        self.driver = webdriver.Chrome(service=service, options=options)
        self.resize(1280)

    def resize(self, width: int, height: int = 900, screen: int | None = None) -> None:
        """A window as wide as the screen, or one on a wider screen."""
        screen = screen or width
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": screen < 600}
        # LuCI's themes ask for the width of the screen.
        size |= {"screenWidth": screen, "screenHeight": height}
        self.screen = screen
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def dark(self, dark: bool) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def open(self, url: str, ready: str) -> None:
        """Until an element `ready` is there."""
        self.problems()
        self.driver.get(url)
        self.one(ready)

    def until(self, what: Callable, why: str):
        return WebDriverWait(self.driver, PATIENCE, 0.1).until(lambda _: what(), why)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        return self.until(lambda: next(iter(self.all(selector)), None), f"no {selector}")

    def click(self, selector: str) -> None:
        def clicked() -> bool:
            try:
                node = self.one(selector)
                self.run("arguments[0].scrollIntoView({block: 'center'})", node)
                node.click()
            except StaleElementReferenceException:
                # The page has drawn it anew meanwhile.
                return False
            return True

        self.until(clicked, f"{selector} cannot be clicked")

    def run(self, script: str, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, selector: str = "#maincontent") -> str:
        return self._read(selector, lambda node: node.text)

    def attribute(self, selector: str, name: str) -> str:
        return self._read(selector, lambda node: node.get_attribute(name))

    def _read(self, selector: str, what: Callable[[WebElement], str]) -> str:
        def read() -> list[str]:
            try:
                return [what(self.one(selector))]
            except StaleElementReferenceException:
                # The page has drawn it anew meanwhile.
                return []

        return self.until(read, f"{selector} cannot be read")[0]

    def says(self, text: str, selector: str = "#maincontent") -> None:
        self.until(
            lambda: (
                text
                in self.run(
                    "return document.querySelector(arguments[0])?.innerText ?? ''", selector
                )
            ),
            f"{selector} does not say {text!r}",
        )

    def wider(self) -> list[str]:
        """What sticks out of the page's right edge."""
        return self.run(WIDER)

    def problems(self) -> list[str]:
        """What the console said since the last time, as errors."""
        log = self.driver.get_log("browser")
        return [entry["message"] for entry in log if entry["level"] == "SEVERE"]

    def hide(self, hidden: bool) -> None:
        """As if another tab were looked at."""
        self.run(
            "Object.defineProperty(document, 'hidden', {value: arguments[0], configurable: true});"
            "Object.defineProperty(document, 'visibilityState',"
            " {value: arguments[0] ? 'hidden' : 'visible', configurable: true});"
            "document.dispatchEvent(new Event('visibilitychange'));",
            hidden,
        )

    def run_for(self, seconds: float, what: Callable, settle: float = 0) -> list:
        """What was the case every tenth of a second: that nothing happens takes time."""
        time.sleep(settle)
        seen = []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            seen.append(what())
            time.sleep(0.1)
        return seen

    def picture(self, name: str) -> None:
        """Of the whole page, into out/luci."""
        OUT.mkdir(parents=True, exist_ok=True)
        (width, height) = self.run("return [innerWidth, Math.max(document.body.scrollHeight, 400)]")
        screen = self.screen
        self.resize(width, height, screen)
        self.driver.execute_async_script(STILL)
        self.driver.save_screenshot(str(OUT / f"{name}.png"))
        self.resize(width, screen=screen)

    def close(self) -> None:
        self.driver.quit()
        self.profile.cleanup()
