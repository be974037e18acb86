# SPDX-License-Identifier: GPL-2.0-or-later
"""Real downloads across emulated links. What is asserted are ratios between runs of
the same seeds in the same minute, so that a slow or busy machine changes little."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest
from testbed import experiment as single
from testbed.assists.off import Off
from testbed.assists.pep import Pep
from testbed.loads.apps import PORT, App
from testbed.measure import result
from testbed.setups import Setup
from testbed.world.programs import Programs
from testbed.world.scenario import Scenario
from testbed.world.topology import ADDRESSES, ROUTER_WIFI

pytestmark = [
    pytest.mark.experiment,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it makes network namespaces"),
]
RUN = Path(__file__).parents[1] / "run.py"
TRAIN = ["--preset", "train"]
SMALL = ["--bytes", "1MB"]


class Invocation:
    """One run.py, with a mark by which everything it started can be found."""

    def __init__(self, directory, *arguments):
        self.mark = f"PEMI_TEST_MARK={uuid.uuid4().hex}"
        name, value = self.mark.split("=")
        self.process = subprocess.Popen(
            [sys.executable, RUN, *arguments],
            # Logs go where pytest clears up: after SIGKILL nobody else does.
            env={**os.environ, name: value, "TMPDIR": str(directory)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(self, timeout_s):
        output, _ = self.process.communicate(timeout=timeout_s)
        print(output)
        return self.process.returncode

    def left_behind(self):
        """Command lines of what is still there."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
        return found

    def wait_for(self, program):
        """Until a program of this name runs under the mark."""
        deadline = time.monotonic() + 60
        while not any(line.split()[0].endswith(program) for line in self.left_behind() if line):
            assert self.process.poll() is None, self.process.stdout.read()
            assert time.monotonic() < deadline, f"no {program}"
            time.sleep(0.05)


def strays():
    """What a topology could have left in the machine's own namespace. Only names of
    ours count: other experiments may be going on."""
    links = json.loads(subprocess.check_output(["ip", "-j", "link"]))
    names = [link["ifname"] for link in links]
    names += subprocess.check_output(["ip", "netns"], text=True).split()
    return [name for name in names if re.fullmatch(r"(client|wifi|router|wan|server)(-.*)?", name)]


def experiment(tmp_path, *arguments):
    """Runs it and returns the result; nothing may be left behind."""
    path = tmp_path / "result.json"
    invocation = Invocation(tmp_path, *arguments, "--json", str(path))
    assert invocation.finish(timeout_s=600) == 0
    assert invocation.left_behind() == []
    assert strays() == []
    return json.loads(path.read_text())


def goodput(runs, assist):
    return result.median(result.select(runs, assist=assist), result.goodput)


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """5 MB at 1 % loss, three seeds, off and on in turn."""
    directory = tmp_path_factory.mktemp("train")
    arguments = ["--off", "--pemi", "--seeds", "3", "goodput", "--bytes", "5MB"]
    return experiment(directory, *TRAIN, *arguments)["runs"]


def test_pemi_speeds_a_download_up(train):
    assert goodput(train, "pemi") >= 1.8 * goodput(train, "off")


def test_it_does_so_from_a_ring_as_well(train, tmp_path):
    options = f"--device {ROUTER_WIFI} --repair infer --capture ring"
    arguments = ["--pemi", "--pemi-options", options, "--seeds", "3", "goodput", "--bytes", "5MB"]
    runs = experiment(tmp_path, *TRAIN, *arguments)["runs"]
    assert goodput(runs, "pemi") >= 1.8 * goodput(train, "off")
    for run in runs:
        status = run["router"]["status"]
        assert status["capture"] == {"used": "ring", "reason": None}
        assert status["queues"][0]["missed"] == 0
    assert result.median(runs, lambda run: run["inference"]["recall"]) >= 0.7


def test_losses_are_repaired_and_copies_are_few(train):
    on = result.select(train, assist="pemi")
    assert result.median(on, lambda run: run["inference"]["recall"]) >= 0.7
    assert result.median(on, lambda run: run["inference"]["unneeded_percent"]) <= 12


def test_result_has_everything_that_was_promised(train):
    for run in train:
        assert (run["app"], run["stack"], run["bytes"]) == ("goodput", "quinn", 5_000_000)
        assert run["metrics"]["fct_s"] > 0
        for hop in ("wifi", "wan"):
            for direction in ("down", "up"):
                assert run["links"][hop][direction]["packets"] > 100
        assert run["links"]["wifi"]["down"]["lost"] > 0
    for run in result.select(train, assist="pemi"):
        assert run["router"]["cpu_s"] > 0
        assert 0 < run["router"]["rss_kib"] < 64 * 1024
        assert run["router"]["status"]["packets"]["down"] > 3000
    assert all(run["inference"]["copies"] == 0 for run in result.select(train, assist="off"))


def test_a_clean_hop_costs_nothing(tmp_path):
    arguments = ["--loss1", "0", "--off", "--pemi", "goodput", "--bytes", "5MB"]
    runs = experiment(tmp_path, *TRAIN, *arguments)["runs"]
    assert goodput(runs, "pemi") >= 0.95 * goodput(runs, "off")


def test_download_survives_the_death_of_the_daemon(tmp_path):
    arguments = ["--pemi", "--kill-daemon-after", "1.5", "goodput", "--bytes", "5MB"]
    (run,) = experiment(tmp_path, *TRAIN, *arguments)["runs"]
    assert run["metrics"]["goodput_mbps"] > 0
    assert run["router"] is None


def test_ipv6_is_helped_too(tmp_path):
    arguments = ["--ipv6", "--pemi", "goodput", "--bytes", "5MB"]
    (run,) = experiment(tmp_path, *TRAIN, *arguments)["runs"]
    assert run["inference"]["repaired"] >= 0.5 * run["inference"]["losses"] > 0


def test_a_wan_by_traces_has_their_rate(tmp_path):
    arguments = ["--mm-config", "leo", "--off", "goodput", "--bytes", "10MB"]
    (run,) = experiment(tmp_path, *arguments)["runs"]
    # 10 MB over the 47 Mbit/s of its mean; over the 10 Mbit/s of the default link it
    # could not be more than 10.
    assert run["metrics"]["goodput_mbps"] > 15


@dataclass(frozen=True, kw_only=True)
class Fetch(App):
    """A download over plain TCP from a server that serves its client only."""

    folder: str

    def server(self, place):
        program = """
import functools, http.server, socket, sys
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
    def server_bind(self):
        # Some kernels' default is another one.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        super().server_bind()
    def verify_request(self, request, client_address):
        # A proxy that shows itself gets nothing.
        return client_address[0] == sys.argv[4]
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[3])
Server((sys.argv[1], int(sys.argv[2])), handler).serve_forever()
"""
        ip, port = place.address.rsplit(":", 1)
        client = ADDRESSES[6 if ":" in ip else 4][0]
        options = (ip.strip("[]"), port, self.folder, client)
        return [sys.executable, "-c", program, *options]

    def client(self, place):
        program = """
import json, sys, time, urllib.request
began = time.monotonic()
size = len(urllib.request.urlopen(sys.argv[1]).read())
seconds = time.monotonic() - began
json.dump({"bytes": size, "goodput_mbps": size * 8e-6 / seconds}, open(sys.argv[2], "w"))
"""
        return [sys.executable, "-c", program, f"http://{place.address}/file", str(place.result)]


def test_a_split_helps_tcp_in_both_families(tmp_path):
    size = 3_000_000
    (tmp_path / "file").write_bytes(bytes(size))
    app = Fetch(
        name="fetch",
        stack="tcp",
        cc="cubic",
        label="fetch",
        timeout_s=120,
        programs=(),
        bytes=size,
        folder=str(tmp_path),
    )

    def fetch(assist, ipv6=False):
        scenario = Scenario.from_preset("train", ipv6=ipv6)
        return single.run(Setup(scenario, app, assist, seed=1))

    off, on, on_6 = fetch(Off()), fetch(Pep()), fetch(Pep(), ipv6=True)
    for split in (on, on_6):
        assert goodput([split], "pep") >= 1.8 * goodput([off], "off")
        status = split["router"]["status"]
        assert (status["connections"], status["reset"], status["open"]) == (1, 0, 0)
        assert status["bytes_down"] > size
        assert split["inference"] is None


def test_a_code_recovers_what_is_lost(tmp_path):
    arguments = ["--fec", "2", "3", "goodput", "--bytes", "3MB"]
    (run,) = experiment(tmp_path, *TRAIN, *arguments)["runs"]
    assert (run["assist"], run["router"], run["inference"]) == ("fec-2-3", None, None)
    down, wifi = run["fec"]["down"], run["links"]["wifi"]["down"]
    # Every second datagram brings a repair.
    assert 0.5 * down["sources"] <= down["repairs"] < 0.6 * down["sources"]
    assert down["sources"] + down["repairs"] >= wifi["packets"] > down["sources"]
    # At 1 % loss a group of three rarely loses two.
    assert down["recovered"] >= 0.5 * wifi["lost"] * 2 / 3 > 0


def test_call_loses_no_frame(tmp_path):
    arguments = ["--pemi", "rtc", "--seconds", "5"]
    (run,) = experiment(tmp_path, *TRAIN, *arguments)["runs"]
    assert run["metrics"]["frames"] == 150
    assert run["metrics"]["frames_lost"] == 0


VOICE = ["--loss1", "3.6", "media", "--seconds"]


def test_quacks_shorten_what_packets_of_a_call_wait(tmp_path):
    assists = ["off", "sidekick-2p", "sidekick-adaptive"]
    options = ["--off", "--sidekick", "2p", "--sidekick", "adaptive", "--repeat", "2"]
    runs = experiment(tmp_path, *options, *VOICE, "8")["runs"]
    assert sorted(run["assist"] for run in runs) == sorted(assists * 2)
    for run in runs:
        metrics = run["metrics"]
        assert (metrics["frames"], metrics["missing"]) == (400, 0)
        assert metrics["sent"] == 400 + sum(metrics["retransmitted"].values())
        assert len(metrics["dejitters_ms"]) == 400
        assert run["links"]["wifi"]["up"]["lost"] > 0
        assert run["inference"] is None
    for run in result.select(runs, assist="off"):
        assert run["router"] is None
        assert run["metrics"]["retransmitted"]["quack"] == 0
        assert run["metrics"]["retransmitted"]["nack"] > 0
    for run in (run for run in runs if run["assist"] != "off"):
        told = run["router"]["status"]["sidekick"]
        quacks = run["metrics"]["overhead"]["quacks"]
        # Some are lost on the way to the sender.
        assert told["quacks"] >= quacks >= run["metrics"]["sidekick"]["quacks"] > 0
        assert told["packets"] > 350
        assert run["metrics"]["retransmitted"]["quack"] > 0
        # The queue is not there for it.
        assert run["router"]["status"]["packets"]["up"] == 0
    # Both runs lost the same packets. A machine that pauses only ever adds to what packets
    # wait, and to the quACKs of whoever waits for an answer: what the faster of the two had
    # is the programs' own.
    off, packets, adaptive = (
        min(
            (run["metrics"] for run in result.select(runs, assist=assist)),
            key=lambda metrics: metrics["dejitter_ms"]["mean"],
        )
        for assist in assists
    )
    assert packets["dejitter_ms"]["mean"] <= 0.6 * off["dejitter_ms"]["mean"]
    assert adaptive["dejitter_ms"]["mean"] <= 0.3 * off["dejitter_ms"]["mean"]
    assert adaptive["overhead"]["quack_bytes"] <= packets["overhead"]["quack_bytes"]


def test_quacks_speed_an_upload_up(tmp_path):
    # To the router and no further, a loss costs an upload most of its rate.
    assists = ["--loss1", "3", "--off", "--sidekick", "adaptive"]
    off, on = experiment(tmp_path, *assists, "upload", "--bytes", "2MB")["runs"]
    assert (off["bytes"], on["bytes"]) == (2_000_000, 2_000_000)
    assert on["metrics"]["goodput_mbps"] >= 1.3 * off["metrics"]["goodput_mbps"]
    assert on["metrics"]["sidekick"]["resent"] > 0
    assert off["metrics"]["sidekick"] is None
    assert on["metrics"]["overhead"]["quack_percent"] < 10


def test_a_call_survives_the_restart_of_the_router(tmp_path):
    killed = ["--kill-daemon-after", "3", "--restart-daemon-after", "2"]
    (run,) = experiment(tmp_path, "--sidekick", "2p", *killed, *VOICE, "10")["runs"]
    metrics, told = run["metrics"], run["router"]["status"]["sidekick"]
    assert (metrics["frames"], metrics["missing"]) == (500, 0)
    # The receiver told what was lost meanwhile.
    assert metrics["retransmitted"]["nack"] > 0
    assert metrics["sidekick"]["fallbacks"] >= 1
    # This is what the second daemon says of itself.
    assert told["quacks"] > 0
    assert metrics["sidekick"]["quacks"] > told["quacks"]


def test_a_capture_of_the_router_can_be_replayed(tmp_path):
    arguments = ["--keep", str(tmp_path), "--capture", "--off", "goodput", "--bytes", "1MB"]
    (run,) = experiment(tmp_path, *TRAIN, "--loss1", "2", *arguments)["runs"]
    (capture,) = tmp_path.glob("*/router_wifi.pcap")
    command = [Programs.pemi, "replay", capture, "--json", "--port", str(PORT)]
    command += ["--truth", capture.with_name("wifi.csv"), "--local-rtt-ms", "2"]
    report = json.loads(subprocess.check_output(command))
    truth, wifi = report["truth"], run["links"]["wifi"]
    assert (truth["unmatched"], truth["packets"]) == (0, report["total"]["packets"]["down"])
    assert (truth["packets"], truth["losses"]) == (wifi["down"]["packets"], wifi["down"]["lost"])
    assert truth["losses"] > 0
    assert truth["recall"] >= 0.5
    # One copy of a lost packet at least is among those that would have been sent.
    assert truth["copies_needed"] > 0
    (flow,) = report["flows"]
    # Twice the hop's delay, and what its rate and the client add.
    assert 2_000 <= flow["local_rtt_us"] < 10_000


def test_logs_and_captures_agree_on_every_packet(tmp_path):
    keep = tmp_path / "keep"
    experiment(tmp_path, *TRAIN, "--pemi", "--capture", "--keep", str(keep), "goodput", *SMALL)
    (logs,) = keep.iterdir()
    tables = {}
    for source, more in (("logs", []), ("captures", ["--captures"])):
        table = tmp_path / f"{source}.csv"
        subprocess.run([RUN.with_name("packets.py"), logs, "--csv", table, *more], check=True)
        with table.open() as file:
            tables[source] = list(csv.DictReader(file))

    def fates(source):
        # Captures do not tell what the queue dropped from what was lost, nor a packet
        # from a copy right behind it.
        plain = {"wan queue": "wan lost", "repaired": "ok"}
        rows = tables[source]
        return sorted((row["direction"], plain.get(row["fate"], row["fate"])) for row in rows)

    assert fates("logs") == fates("captures")
    repaired = [row for row in tables["logs"] if row["fate"] == "repaired"]
    assert repaired
    for row in repaired:
        assert int(row["copies_needed"]) >= 1
        assert float(row["client_ms"]) > float(row["first_copy_ms"])


@pytest.mark.parametrize("stack", ["quiche", "quicgo"])
def test_other_stacks_download_and_call(stack, tmp_path):
    download = ["--pemi", "goodput", "--bytes", "1MB", "--stack", stack]
    (run,) = experiment(tmp_path, *TRAIN, *download)["runs"]
    assert (run["app"], run["stack"], run["bytes"]) == ("goodput", stack, 1_000_000)
    assert run["metrics"]["complete"]
    assert run["inference"]["losses"] > 0
    call = ["--pemi", "rtc", "--seconds", "2", "--stack", stack]
    (run,) = experiment(tmp_path, *TRAIN, *call)["runs"]
    assert (run["metrics"]["frames"], run["metrics"]["frames_lost"]) == (60, 0)
    # The round trip is 52 ms: a frame cannot come before half of it has passed.
    assert 26 < run["metrics"]["frame_delay_ms"]["p50"] < 1000


def test_http_with_what_others_wrote(tmp_path):
    arguments = ["--pemi", "http", "--bytes", "500kB", "--stack", "all"]
    runs = experiment(tmp_path, *TRAIN, *arguments)["runs"]
    protocols = [(run["stack"], run["metrics"]["protocol"]) for run in runs]
    assert protocols == [
        ("tcp", "HTTP/1.1"),
        ("quicgo", "HTTP/3.0"),
        *[(stack, "h3") for stack in ("curl", "chromium", "firefox")],
    ]
    for run in runs:
        assert run["metrics"]["fct_s"] > run["metrics"]["handshake_s"] >= 0.052
        # More than the bytes went over the link: nothing came from elsewhere.
        assert run["links"]["wan"]["down"]["packets"] >= 500_000 / 1500


def test_connections_take_as_many_round_trips_as_they_should(tmp_path):
    arguments = ["--loss1", "0", "connect", "--count", "3", "--stack", "all"]
    runs = experiment(tmp_path, *TRAIN, *arguments)["runs"]
    trips = {run["stack"]: run["metrics"]["connect_ms"]["p50"] / 52 for run in runs}
    assert 1 <= trips["quinn-0rtt"] < 2 <= trips["quinn"] < 3 <= trips["tcp"] < 4


@pytest.mark.parametrize(
    ("browser", "program"), [("chromium", "/chromium"), ("firefox", "firefox-esr")]
)
def test_a_browser_leaves_nothing_behind(browser, program, tmp_path):
    arguments = ["http", "--bytes", "50MB", "--stack", browser]
    invocation = Invocation(tmp_path, *TRAIN, *arguments)
    invocation.wait_for(program)
    invocation.process.kill()
    invocation.finish(timeout_s=20)
    expect_nothing_left(invocation)


def test_every_published_experiment_runs_in_its_smallest_form(tmp_path):
    command = [RUN.with_name("study.py"), "--size", "smallest", "--out", tmp_path]
    first = subprocess.run(command, capture_output=True, text=True)
    assert first.returncode == 0, first.stderr
    names = [path.stem for path in (RUN.parent / "experiments").glob("*.toml")]
    index = (tmp_path / "index.html").read_text()
    for name in names:
        document = _result(tmp_path, name)
        assert document["runs"]
        assert not document["failures"]
        assert any(table["rows"] for table in document["tables"]), name
        assert f"{name}/smallest/report.html" in index
    # What is done is done, but for the runs that this machine was too busy for: those are
    # tried again.
    trusted = [name for name in names if not _result(tmp_path, name)["disturbed"]]
    assert trusted
    again = subprocess.run([*command, *trusted], capture_output=True, text=True)
    assert again.returncode == 0
    assert "[1/" not in again.stderr


def _result(out, name):
    return json.loads((out / name / "smallest/result.json").read_text())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_it_leaves_nothing_behind(number, tmp_path):
    invocation = Invocation(tmp_path, *TRAIN, "--pemi", "goodput", "--bytes", "50MB")
    invocation.wait_for("/goodput")
    invocation.process.send_signal(number)
    code = invocation.finish(timeout_s=20)
    assert code == (-9 if number == signal.SIGKILL else 130)
    expect_nothing_left(invocation)


def expect_nothing_left(invocation):
    deadline = time.monotonic() + 5
    while invocation.left_behind() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert invocation.left_behind() == []
    assert strays() == []
