# SPDX-License-Identifier: GPL-2.0-or-later
"""What routers tell a fleet: the collector against a real daemon, and what is made of it
by Debian's real Prometheus, the alerts and the dashboard."""

import json
import re
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from routers import FLEET, FLOWS, ROOT, Exporter

BIN = ROOT / "out/fleet/usr/bin"
NAME = re.compile(r"pemi_[a-z0-9_]+")
# A scrape of a daemon with that many flows takes less, in seconds.
QUICK = 0.05
# For Prometheus to start and to scrape, in seconds
PATIENCE = 30


def families(text: str) -> dict[str, list[tuple[str, float]]]:
    """Labels and values by the names of metrics."""
    found = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            found.setdefault(line.split()[2], [])
        elif not line.startswith("#"):
            name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
            found[name].append((labels or "", float(value)))
    return found


def promtool(*arguments: str | Path, text: str = "") -> str:
    command = [BIN / "promtool", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_names_and_texts_are_as_prometheus_wants_them(exporter):
    text, _ = exporter.scrape()
    assert promtool("check", "metrics", text=text) == ""
    for name in families(text):
        assert re.search(rf"^# HELP {name} \S.*\.$", text, re.MULTILINE), name


def test_figures_are_those_of_the_daemon(exporter):
    found = families(exporter.scrape()[0])
    assert found["pemi_up"] == [("", 1)]
    assert dict(found["pemi_flows"])['state="active"'] == FLOWS
    assert dict(found["pemi_packets_total"]) == {
        'direction="down"': FLOWS,
        'direction="up"': 2 * FLOWS,
    }
    ((device, ratio),) = found["pemi_benefit_ratio"]
    assert device == 'device="lan0"' and 1.7 < ratio < 2
    ((_, low), (_, high)) = *found["pemi_benefit_low_ratio"], *found["pemi_benefit_high_ratio"]
    assert 1 < low <= ratio <= high
    downloads = {
        tuple(sorted(labels.split(","))): value for labels, value in found["pemi_benefit_downloads"]
    }
    assert sorted(downloads.values()) == [10, 90]
    assert found["pemi_stands_back"] == [('device="lan0"', 0)]


def test_a_scrape_is_quick(exporter):
    """The least of several: others use this machine as well."""
    times = [exporter.scrape()[1] for _ in range(10)]
    print(f"{FLOWS} flows: {min(times) * 1000:.1f} to {max(times) * 1000:.1f} ms")
    assert min(times) < QUICK


def test_series_are_as_many_with_a_thousand_flows_as_with_none(exporter):
    found = families(exporter.scrape()[0])
    assert sum(map(len, found.values())) < 80
    assert not re.search(r"10\.78\.", exporter.scrape()[0]), "nobody is named"


def test_a_daemon_that_is_not_there_is_told(tmp_path):
    exporter = Exporter(tmp_path / "none.sock")
    assert families(exporter.scrape()[0]) == {"pemi_up": [("", 0)]}
    exporter.end()


def test_alerts():
    assert "5 rules found" in promtool("check", "rules", FLEET / "alerts.yml")
    promtool("test", "rules", ROOT / "test/fleet/alerts_test.yml")


def test_alerts_dashboard_and_page_name_metrics_that_there_are(exporter):
    found = families(exporter.scrape()[0])
    for name in ("alerts.yml", "grafana.json", "README.md"):
        used = set(NAME.findall((FLEET / name).read_text()))
        assert used <= found.keys(), (name, used - found.keys())
    page = (FLEET / "README.md").read_text()
    assert found.keys() == set(NAME.findall(page)), "the page explains each"


def test_the_dashboard_is_one():
    dashboard = json.loads((FLEET / "grafana.json").read_text())
    places = set()
    for panel in dashboard["panels"]:
        assert panel["title"] and panel["targets"]
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not places & cells and at["x"] + at["w"] <= 24, panel["title"]
        places |= cells
    expressions = [t["expr"] for panel in dashboard["panels"] for t in panel["targets"]]
    assert all('instance=~"$instance"' in each for each in expressions)
    # As Grafana fills them in
    rules = [
        {"record": f"panel:{number}", "expr": each.replace("$__rate_interval", "5m")}
        for number, each in enumerate(expressions)
    ]
    checked = json.dumps({"groups": [{"name": "panels", "rules": rules}]})
    assert f"{len(rules)} rules found" in promtool("check", "rules", "/dev/stdin", text=checked)


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        with self.server.lock:
            self.wfile.write(self.server.exporter.scrape()[0].encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def prometheus(exporter, tmp_path):
    """The real one, which scrapes the exporter each second; gives what asks it."""
    server = HTTPServer(("127.0.0.1", 0), Page)
    server.exporter, server.lock = exporter, threading.Lock()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    target = f"127.0.0.1:{server.server_port}"
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(FLEET / "alerts.yml")],
        "scrape_configs": [{"job_name": "openwrt", "static_configs": [{"targets": [target]}]}],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [BIN / "prometheus", *own, f"--web.listen-address=127.0.0.1:{port}"],
            stdout=log,
            stderr=log,
        )

    def ask(path: str, **query: str):
        url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)["data"]

    yield ask
    process.terminate()
    process.wait()
    server.shutdown()


def until(wanted):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            if found := wanted():
                return found
        except OSError:
            pass
        assert time.monotonic() < end
        time.sleep(0.2)


def test_prometheus_takes_it(prometheus):
    (series,) = until(lambda: prometheus("query", query='pemi_flows{state="active"}')["result"])
    assert series["value"][1] == str(FLOWS)
    (target,) = prometheus("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    groups = prometheus("rules")["groups"]
    assert groups[0]["rules"][0]["name"] == "PemiNotSeen"
    meant = prometheus("metadata", metric="pemi_benefit_ratio")["pemi_benefit_ratio"]
    assert meant[0]["type"] == "gauge" and meant[0]["help"]
    dashboard = json.loads(Path(FLEET / "grafana.json").read_text())
    for panel in dashboard["panels"]:
        for one in panel["targets"]:
            query = one["expr"].replace("$instance", ".*").replace("$__rate_interval", "5s")
            prometheus("query", query=query)
