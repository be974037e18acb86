# SPDX-License-Identifier: GPL-2.0-or-later
"""Many runs: as few boots as will do, two guests at a time if asked to, results by scenario."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path

from testbed.draw.progress import Progress
from testbed.measure import result
from testbed.measure.result import headline
from testbed.world import interruption

from . import collect, guest, web
from .setups import Lab, Setup

Run = dict[str, object]
# A boot costs as much as half a download.
_RUNS_A_BOOT = 8
# So soon a signal is noticed.
_LOOK_S = 0.2


def boots(setups: Iterable[Setup]) -> list[list[Setup]]:
    """Runs that share a guest: of one lab, and not too many, so that there is something for a
    second guest to do. What ran before in a guest leaves traces in its kernel: it is the same
    runs in the same order that repeat."""
    together: dict[Lab, list[Setup]] = {}
    for setup in setups:
        together.setdefault(setup.lab, []).append(setup)
    return [list(part) for runs in together.values() for part in _parts(runs)]


def _parts(runs: list[Setup]) -> Iterable[list[Setup]]:
    for start in range(0, len(runs), _RUNS_A_BOOT):
        yield runs[start : start + _RUNS_A_BOOT]


def run_all(
    setups: list[Setup], *, jobs: int = 1, keep: Path | None = None, cache: Path | None = None
) -> list[Run]:
    """The runs in the order of the setups, in as few boots as will do."""
    found = {}
    parts = boots(setups)
    for part, runs in zip(parts, carry_out(parts, jobs=jobs, keep=keep, cache=cache), strict=True):
        found |= {id(setup): run for setup, run in zip(part, runs, strict=True)}
    return [found[id(setup)] for setup in setups]


def carry_out(
    parts: list[list[Setup]],
    *,
    jobs: int = 1,
    keep: Path | None = None,
    cache: Path | None = None,
) -> list[list[Run]]:
    """The runs of each boot. With a folder as `cache`, a boot that it has is not done again:
    the same guest with the same plan does the same."""
    for setup in itertools.chain.from_iterable(parts):
        web.check(setup.app)
    for kernel in {part[0].lab.kernel for part in parts}:
        guest.make(kernel)
    files = [cache and cache / f"{guest.key(part)}.json" for part in parts]
    done = [file is not None and file.exists() for file in files]
    left = [number for number in range(len(parts)) if not done[number]]
    told = _Told([setup for number in left for setup in parts[number]], sum(done))
    try:
        with ThreadPoolExecutor(jobs) as pool:
            tasks = [
                pool.submit(_boot, parts[number], keep, files[number], told) for number in left
            ]
            pending = set(tasks)
            try:
                while pending:
                    _, pending = wait(pending, timeout=_LOOK_S, return_when=FIRST_EXCEPTION)
                    interruption.check()
                    for task in tasks:
                        if task.done():
                            task.result()
            except BaseException:
                told.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    finally:
        told.clear()
    measured = iter(tasks)
    return [
        json.loads(file.read_text()) if kept else next(measured).result()
        for file, kept in zip(files, done, strict=True)
    ]


class _Told:
    """One line of progress for all guests."""

    def __init__(self, setups: list[Setup], kept: int) -> None:
        """`kept`: boots that need not be done again."""
        self._progress = Progress([setup.work for setup in setups])
        if kept:
            print(f"{kept} boots have been measured before", file=sys.stderr)
        self._lock = threading.Lock()
        self.stop = threading.Event()

    def began(self, setup: Setup) -> None:
        with self._lock:
            self._progress.begin(describe(setup))

    def ended(self, run: Run) -> None:
        with self._lock:
            self._progress.end(say(run))

    def clear(self) -> None:
        self._progress.clear()


def _boot(setups: list[Setup], keep: Path | None, kept: Path | None, told: _Told) -> list[Run]:
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="pemi-wifi-") as name:
        booted = guest.Guest(setups, Path(name), told.stop)
        for setup, logs in booted.carry_out(told.began):
            if keep is not None:
                shutil.copytree(logs, keep / logs.name, dirs_exist_ok=True)
            run = collect.run(setup, logs)
            runs.append(run)
            told.ended(run)
        if kept and len(runs) == len(setups):
            result.write_json(kept, runs)
    return runs


def describe(setup: Setup) -> str:
    """For the progress line."""
    trouble = "" if setup.trouble is None else f", {setup.trouble}"
    return f"{setup.preset.name}: {setup.app.label}, {setup.assist}{trouble}, seed {setup.seed}"


def say(run: Run) -> str:
    """A run in a few words."""
    metrics, down = run["metrics"], run["links"]["wifi"]["down"]
    words = [f"{run['preset']}:"]
    if run["app"] == "probe":
        delay = metrics["delay_ms"]
        words.append(f"{metrics['lost']} of {metrics['sent']} lost, p50 {delay['p50']:.1f} ms,")
        words.append(f"p99 {delay['p99']:.1f} ms,")
    elif run["app"] == "echo":
        took = metrics["echo_us"]
        words.append(f"{min(took)} to {max(took)} us,")
    else:
        # Nothing here is late or lost for want of time, which is what else it would look for.
        words.append(headline({**run, "links": None}) + ",")
    words.append(f"air lost {down['lost']} of {down['packets']}")
    return " ".join(words)


def document(setups: Iterable[Setup], runs: list[Run]) -> dict[str, object]:
    """The result file: the runs by scenario, as the Mininet testbed writes it."""
    parts: dict[tuple[Lab, str, bool], list[Run]] = {}
    for setup, run in zip(setups, runs, strict=True):
        parts.setdefault((setup.lab, setup.preset.name, run["lossless"]), []).append(run)
    written = [
        {"scenario": _scenario(lab, preset, lossless), "runs": runs}
        for (lab, preset, lossless), runs in parts.items()
    ]
    return written[0] if len(written) == 1 else {"results": written}


def _scenario(lab: Lab, preset: str, lossless: bool) -> dict[str, object]:
    return {
        "hop": "wifi",
        "preset": preset,
        "lossless": lossless,
        "bw2": lab.bw2,
        "delay2": lab.delay2,
        "queue2": lab.queue2,
        "kernel": lab.kernel,
        "security": lab.security,
        "network": lab.network,
    }
