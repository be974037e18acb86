# SPDX-License-Identifier: GPL-2.0-or-later
import dataclasses
import json

import pytest
from testbed.assists.off import Off
from testbed.loads import apps, chromium, firefox, page, web
from testbed.loads.apps import Place
from testbed.setups import Setup
from testbed.world.process import ExperimentError, NotReady
from testbed.world.scenario import Scenario

CURL = {
    "size_download": 1_000_000,
    "time_total": 2.0,
    "time_appconnect": 0.15,
    "http_version": "1.1",
}
BROWSER = {"bytes": 1_000_000, "fct_ms": 2000.0, "handshake_ms": 60.0, "protocol": "h3"}


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "programs", "10.0.2.2:4433", 10, tmp_path)


def test_both_accounts_of_a_download_come_to_the_same():
    curl = web.curl_metrics(CURL, 1_000_000)
    measured = page.metrics(BROWSER, "chromium", 1_000_000)
    assert (curl["fct_s"], curl["goodput_mbps"]) == (2, 4)
    assert (measured["fct_s"], measured["goodput_mbps"]) == (2, 4)
    assert (curl["handshake_s"], measured["handshake_s"]) == (0.15, 0.06)
    assert (curl["protocol"], measured["protocol"]) == ("HTTP/1.1", "h3")


def test_missing_bytes_are_an_error():
    with pytest.raises(ExperimentError, match="999999 of 1000000"):
        web.curl_metrics({**CURL, "size_download": 999_999}, 1_000_000)
    with pytest.raises(page.BrowserError, match="999999 of 1000000"):
        page.metrics({**BROWSER, "bytes": 999_999}, "chromium", 1_000_000)


@pytest.mark.parametrize("protocol", ["h2", "http/1.1", ""])
def test_anything_but_http3_is_an_error(protocol):
    with pytest.raises(page.BrowserError, match="not by h3"):
        page.metrics({**BROWSER, "protocol": protocol}, "chromium", 1_000_000)


def test_the_controller_of_tcp_must_be_the_kernels(tmp_path, monkeypatch):
    available = tmp_path / "available"
    available.write_text("reno cubic\n")
    monkeypatch.setattr(web, "_AVAILABLE", available)
    assert web.http(1, None, 10, "tcp").cc == "cubic"
    assert web.http(1, "newreno", 10, "tcp").cc == "newreno"
    with pytest.raises(ValueError, match="--cc bbr: the kernel's TCP has only cubic, newreno"):
        web.http(1, "bbr", 10, "tcp")


def test_a_tool_that_is_not_there_is_told_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    setup = Setup(Scenario(), web.http(1, None, 10, "tcp"), Off(), 1)
    with pytest.raises(NotReady, match="nginx is not there; `make setup` installs it"):
        setup.check()


def test_nginx_serves_the_bytes_from_a_folder_of_its_own(place):
    line = web.http(5_000_000, "newreno", 10, "tcp").server(place)
    assert (place.logs / "www/file").stat().st_size == 5_000_000
    config = (place.logs / "nginx.conf").read_text()
    assert "listen 10.0.2.2:4433 ssl;" in config
    assert "master_process off;" in config
    assert line[4:6] == ["-4", "reno"]
    assert line[6:9] == ["chrt", "--fifo", "10"]


def test_an_ipv6_server_has_its_route_changed_there(place):
    there = dataclasses.replace(place, address="[fd00::2]:4433", rt=0)
    line = web.http(1, "cubic", 10, "tcp").server(there)
    assert line[4:7] == ["-6", "cubic", "nginx"]


def test_chromium_knows_the_server_by_its_key(place):
    app = web.http(1, None, 10, "chromium")
    app.server(place)
    line = app.client(place)
    first = line[line.index("--spki") + 1]
    app.server(place)
    line = app.client(place)
    assert len(first) == 44
    assert line[line.index("--spki") + 1] != first
    assert line[:2] == ["unshare", "--pid"]


def test_chromium_looks_for_no_other_server(tmp_path):
    for address, host in (("10.0.2.2:4433", "10.0.2.2"), ("[fd00::2]:4433", "[fd00::2]")):
        options = chromium.options(address, "hash", tmp_path)
        assert f"--host-resolver-rules=MAP pemi-test {host}, MAP * ~NOTFOUND" in options
        assert "--origin-to-force-quic-on=pemi-test:4433" in options


def test_firefox_speaks_http3_from_the_first_packet_on():
    for address, host in (("10.0.2.2:4433", "10.0.2.2"), ("[fd00::2]:4433", "fd00::2")):
        settings = firefox.preferences(address)
        assert settings["network.dns.forceResolve"] == host
        mapping = settings["network.http.http3.alt-svc-mapping-for-testing"]
        assert mapping == 'pemi-test;h3=":4433"'


def test_curl_is_told_its_library(place):
    line = web.http(5_000_000, None, 10, "curl").client(place)
    assert line[:3] == ["chrt", "--fifo", "10"]
    assert line[line.index("--library") + 1].endswith("_wrapper.abi3.so")
    assert line[line.index("--bytes") + 1] == "5000000"


def test_a_library_that_is_not_there_is_told_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(web, "_VENV", tmp_path)
    setup = Setup(Scenario(), web.http(1, None, 10, "curl"), Off(), 1)
    with pytest.raises(NotReady, match="is not there; `make setup` installs it"):
        setup.check()


def test_our_own_programs_report_in_a_file(place):
    app = apps.goodput(7, None, 10, "quiche")
    assert app.server(place)[0] == str(place.programs / "goodput-quiche")
    written = {"app": "goodput", "stack": "quiche", "bytes": 7, "fct_s": 1.0}
    place.result.write_text(json.dumps(written))
    assert app.measured(place, "") == {"fct_s": 1.0}
