# SPDX-License-Identifier: GPL-2.0-or-later
"""One browser for all tests; a server of its own for each."""

import pytest
from browser import Browser
from router import Router
from server import Site

SIZES = (1280, 360)
THEMES = ("light", "dark")


@pytest.fixture(scope="session")
def browser():
    browser = Browser()
    yield browser
    browser.close()


class Page:
    """A page of the app on a router in some state."""

    def __init__(self, browser: Browser, site: Site):
        self.browser, self.site = browser, site

    @property
    def router(self) -> Router:
        return self.site.router

    def open(
        self,
        path: str,
        state: str = "running",
        theme: str = "light",
        width: int = 1280,
        screen: int | None = None,
        config: dict | None = None,
    ):
        """`config` is another /etc/config/pemi."""
        self.site.router = Router(state, config)
        self.browser.resize(width, screen=screen)
        self.browser.dark(theme == "dark")
        url = f"{self.site.address}/cgi-bin/luci/{path}?theme={theme}"
        self.browser.open(url, "html[data-ready]")
        return self.browser

    def called(self, *prefix: str) -> list[tuple]:
        """Calls so far, of an object or a method."""
        return [call for call in self.router.calls if call[1 : 1 + len(prefix)] == prefix]


@pytest.fixture
def page(browser):
    site = Site()
    yield Page(browser, site)
    # Nothing goes on asking a server that has gone.
    browser.driver.get("about:blank")
    site.close()
