#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Serves the app's pages with a router's answers: test/luci/server.py STATE [PORT]."""

import json
import sys
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from po import Catalog
from router import Router

HERE = Path(__file__).resolve().parent
APP = HERE.parents[1] / "luci-app-pemi"
MODULES = sorted(path.stem for path in (HERE / "shim").glob("*.js") if path.stem != "core")
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
PAGE = """<!DOCTYPE html>
<html lang="{lang}" data-darkmode="{dark}"><head><meta charset="utf-8"><title>PEMI</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/shim/theme.css">
<script>window.shimConfig = {config};</script><script src="/shim/core.js"></script></head>
<body data-page="{page}"><header><a href="#">Router</a></header>
<div id="modal_overlay" role="dialog"></div>
<div id="maincontent" class="container"><div id="view"></div></div>
<script>L.require('ui').then(() => L.require('{view}')).then(made => new made())
  .catch(error => console.error(String(error)));</script></body></html>
"""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, site: "Site", *rest):
        self.site = site
        super().__init__(*rest)

    def log_message(self, *_):
        pass

    def send(self, body: bytes, kind: str, code: int = 200) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path.startswith("/cgi-bin/luci/"):
            self.send(self.page(path, "theme=dark" in query).encode(), "text/html")
            return
        for prefix, folder in (
            ("/shim/", HERE / "shim"),
            ("/luci-static/", APP / "htdocs/luci-static"),
        ):
            file = (folder / path.removeprefix(prefix)).resolve()
            if path.startswith(prefix) and file.is_relative_to(folder) and file.is_file():
                self.send(file.read_bytes(), TYPES.get(file.suffix, "text/plain"))
                return
        self.send(b"not found", "text/plain", 404)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        many = isinstance(body, list)
        answers = [self.site.router.call(message) for message in (body if many else [body])]
        self.send(json.dumps(answers if many else answers[0]).encode(), "application/json")

    def page(self, path: str, dark: bool) -> str:
        """As the menu says, whose `view` actions are paths below resources/view."""
        node = path.removeprefix("/cgi-bin/luci/").strip("/")
        action = self.site.menu.get(node, {}).get("action", {})
        view = "view." + action["path"].replace("/", ".") if "path" in action else "statuspage"
        includes = sorted((APP / "htdocs/luci-static/resources/view/status/include").glob("*.js"))
        config = {
            "modules": MODULES,
            "translations": self.site.catalog.texts,
            "plural": self.site.catalog.plural,
            "env": {
                "sessionid": "0" * 32,
                "pollinterval": 5,
                "includes": [f"view.status.include.{path.stem}" for path in includes],
                "readonly": bool(self.site.router.options.get("readonly")),
                "requestpath": node.split("/"),
            },
        }
        page = node.replace("/", "-")
        return PAGE.format(
            dark=str(dark).lower(),
            config=json.dumps(config),
            view=view,
            page=page,
            lang=self.site.catalog.language,
        )


class Site:
    """The server in a thread; the state is changed by setting `router`."""

    def __init__(self, state: str = "running", port: int = 0):
        self.router = Router(state)
        self.catalog = Catalog()
        self.menu = {}
        for file in (APP / "root/usr/share/luci/menu.d").glob("*.json"):
            self.menu |= json.loads(file.read_text())
        self.server = ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, self))
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    arguments = [*sys.argv[1:], "8080"]
    site = Site(arguments[0], int(arguments[1]))
    print(f"{site.address}/cgi-bin/luci/admin/services/pemi/overview?theme=dark")
    site.thread.join()
