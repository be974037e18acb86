# SPDX-License-Identifier: GPL-2.0-or-later
"""A headless browser downloads once over HTTP/3.

To be run in a process namespace of its own: the browser is a dozen processes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .chromium import Chromium
from .firefox import Firefox
from .page import NAME, BrowserError, metrics

_BROWSERS = {"chromium": Chromium, "firefox": Firefox}


def main() -> int:
    parser = argparse.ArgumentParser(prog="browser", description=__doc__)
    parser.add_argument("browser", choices=_BROWSERS)
    parser.add_argument("--connect", required=True, help="the server's address and port")
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--spki", required=True, help="SHA-256 of its public key, as base64")
    parser.add_argument("--profile", type=Path, required=True, help="a folder of its own")
    parser.add_argument("--timeout", type=float, required=True, help="seconds")
    parser.add_argument("--json", type=Path, required=True, help="where the result goes")
    given = parser.parse_args()
    given.profile.mkdir(parents=True, exist_ok=True)
    try:
        browser = _BROWSERS[given.browser](given.connect, given.spki, given.profile, given.timeout)
        port = given.connect.rpartition(":")[2]
        measured = browser.download(f"https://{NAME}:{port}/bytes/{given.bytes}")
        result = metrics(measured, given.browser, given.bytes)
    except BrowserError as error:
        print(f"browser: {error}", file=sys.stderr)
        return 1
    given.json.write_text(json.dumps(result) + "\n")
    browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
