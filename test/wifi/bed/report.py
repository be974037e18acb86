# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of a study, as text and as a page."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Callable, Iterable

from testbed.draw import html

from . import ROOT
from .presets import Preset

Run = dict
# Title, words above it, head, rows.
Table = tuple[str, str, list[str], list[list[str]]]

_NOTHING = "-"
_STACKS = {"quinn": "quinn", "quicgo": "quic-go"}


def commit() -> str:
    """Of the tree that was measured; with a mark if it is not what is committed."""
    what = ("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10")
    return subprocess.run(what, capture_output=True, text=True, check=True).stdout.strip()


def markdown(runs: list[Run], presets: list[Preset], made: dict[str, object]) -> str:
    """The whole of RESULTS.md."""
    parts = ["# What the Wi-Fi guest measured", "", _words(made), ""]
    for title, words, head, rows in _tables(runs, presets):
        parts += [f"## {title}", ""]
        if words:
            parts += [words, ""]
        parts += [row(head), row(["---"] * len(head)), *map(row, rows), ""]
    return "\n".join(parts).rstrip() + "\n"


def page(runs: list[Run], presets: list[Preset], made: dict[str, object]) -> str:
    """The same for a browser."""
    body = "<h1>PEMI over a real 802.11 stack</h1>" + f"<p>{_plain(_words(made))}</p>"
    for title, words, head, rows in _tables(runs, presets):
        cells = [[_plain(cell) for cell in row] for row in rows]
        body += html.section(title, _plain(words), (), None, html.table(head, cells))
    return html.document("PEMI over a real 802.11 stack", body)


def _plain(text: str) -> str:
    return text.replace("`", "")


def row(cells: Iterable[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def _words(made: dict[str, object]) -> str:
    seeds = f"seeds 1 to {made['seeds']}" if made["seeds"] > 1 else "one seed, which is little:"
    seeds += " of the air" if made["seeds"] > 1 else " how many losses there are is chance"
    return (
        f"Figures of `make wifi` on {made['date']}, commit {made['commit']}, Debian's Linux "
        f"{made['kernel']}, {made['security']}, {made['part']}; {seeds}. WAN 10 Mbit/s, 20 ms "
        "each way, a queue of 60 packets. Times are the guest's and do not depend on the "
        "machine. Rates and delays are medians of the seeds, packets are sums. `lossless`: the "
        "same lab, nothing fails on the air and nobody else sends; presets with one lab share it. "
        "What is sent to an access point that the client has left (`roam`) the air does not count."
    )


def _tables(runs: list[Run], presets: list[Preset]) -> Iterable[Table]:
    for stack in _STACKS:
        of = _of(runs, app="goodput", stack=stack)
        if of:
            yield _downloads(stack, of, presets)
    of = _of(runs, app="http")
    if of:
        yield _tcp(of, presets)
    for stack in _STACKS:
        of = _of(runs, app="rtc", stack=stack)
        if of:
            yield _calls(stack, of, presets)
    of = _of(runs, app="media")
    if of:
        yield _voice(of, presets)
    about = [[f"`{preset.name}`", preset.about] for preset in presets]
    yield "The presets", "", ["preset", "what it is"], about


def _downloads(stack: str, runs: list[Run], presets: list[Preset]) -> Table:
    head = ["preset", "lossless, Mbit/s", "off", "pemi", "pemi / off", *_LOSSES, *_COPIES]
    rows = []
    for preset, off, on in _pairs(runs, presets):
        before, after = (_median(part, _goodput) for part in (off, on))
        lossless = _median(_lossless(runs, preset, presets), _goodput)
        rates = [_short(value) for value in (lossless, before, after)]
        quotient = f"{after / before:.2f}"
        rows.append([f"`{preset.name}`", *rates, quotient, *_losses(off, on), *_copies(on)])
    return f"Downloads of {_size(runs)} with {_STACKS[stack]}", "", head, rows


def _tcp(runs: list[Run], presets: list[Preset]) -> Table:
    words = (
        "What a hop does to any sender: nginx and curl, HTTP/1.1 over TLS 1.3 with the kernel's "
        "Cubic. PEMI leaves TCP alone. (Debian's curl has no HTTP/3.)"
    )
    head = ["preset", "off, Mbit/s", "lost on the air", "dropped before it"]
    rows = []
    for preset in presets:
        off = _of(runs, preset=preset.name)
        if off:
            rate = _short(_median(off, _goodput))
            rows.append([f"`{preset.name}`", rate, _sum(off, _lost), _sum(off, _queue_dropped)])
    return f"Downloads of {_size(runs)} over TCP", words, head, rows


def _calls(stack: str, runs: list[Run], presets: list[Preset]) -> Table:
    def lost(run: Run) -> int:
        return run["metrics"]["frames_lost"]

    head = ["preset", "lossless p50", "p99", "off p50", "p99", "pemi p50", "p99"]
    head += ["frames lost, off / pemi", *_LOSSES, *_COPIES]
    rows = []
    for preset, off, on in _pairs(runs, presets):
        lossless = _lossless(runs, preset, presets)
        delays = _delays("frame_delay_ms", lossless, off, on)
        frames = f"{_sum(off, lost)} / {_sum(on, lost)}"
        rows.append([f"`{preset.name}`", *delays, frames, *_losses(off, on), *_copies(on)])
    return f"Video calls with {_STACKS[stack]}: delay of a frame, ms", "", head, rows


def _voice(runs: list[Run], presets: list[Preset]) -> Table:
    def missing(run: Run) -> int:
        return run["metrics"]["missing"]

    words = "What the client sends PEMI does not help, and must not harm."
    head = ["preset", "off p50", "p99", "pemi p50", "p99", "missing, off / pemi"]
    rows = []
    for preset, off, on in _pairs(runs, presets):
        delays = _delays("dejitter_ms", off, on)
        lost = f"{_sum(off, missing)} / {_sum(on, missing)}"
        rows.append([f"`{preset.name}`", *delays, lost])
    return "Voice from the client: de-jitter latency of a packet, ms", words, head, rows


_LOSSES = ["lost on the air, off / pemi", "dropped before it"]
_COPIES = ["copies", "of them needless", "repaired in time"]


def _losses(off: list[Run], on: list[Run]) -> list[str]:
    return [f"{_sum(off, count)} / {_sum(on, count)}" for count in (_lost, _queue_dropped)]


def _copies(on: list[Run]) -> list[str]:
    # Of what is encrypted nobody can say which frame is a copy.
    if any(run["inference"] is None for run in on):
        return [_NOTHING] * len(_COPIES)
    needless = _sum(on, lambda run: run["inference"]["copies"] - run["inference"]["copies_needed"])
    copies, repaired = (
        _sum(on, lambda run, name=name: run["inference"][name]) for name in ("copies", "repaired")
    )
    return [copies, needless, repaired]


def _delays(metric: str, *parts: list[Run]) -> list[str]:
    return [
        _short(_median(part, lambda run, name=name: run["metrics"][metric][name]))
        for part in parts
        for name in ("p50", "p99")
    ]


def _pairs(runs: list[Run], presets: list[Preset]) -> Iterable[tuple[Preset, list[Run], list[Run]]]:
    """The presets that have been run, without PEMI and with it."""
    for preset in presets:
        off, on = (
            _of(runs, preset=preset.name, assist=assist, lossless=False)
            for assist in ("off", "pemi")
        )
        if off and on:
            yield preset, off, on


def _lossless(runs: list[Run], preset: Preset, presets: list[Preset]) -> list[Run]:
    """What its lab does when nothing fails: measured as such, or `clean` in the same lab."""
    alike = {other.name for other in presets if other.surroundings == preset.surroundings}
    found = [run for run in runs if run["lossless"] and run["preset"] in alike]
    if not found and "clean" in alike:
        found = _of(runs, preset="clean", assist="off")
    return found


def _of(runs: list[Run], **wanted: object) -> list[Run]:
    return [run for run in runs if all(run[key] == value for key, value in wanted.items())]


def _median(runs: list[Run], value: Callable[[Run], float | None]) -> float | None:
    found = [number for run in runs if (number := value(run)) is not None]
    return statistics.median(found) if found else None


def _sum(runs: list[Run], count: Callable[[Run], int]) -> str:
    return str(sum(map(count, runs)))


def _short(value: float | None) -> str:
    """Three digits are what two runs of one plan have in common."""
    if value is None:
        return _NOTHING
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _size(runs: list[Run]) -> str:
    return f"{runs[0]['bytes'] / 1e6:g} MB"


def _goodput(run: Run) -> float:
    return run["metrics"]["goodput_mbps"]


def _lost(run: Run) -> int:
    return run["links"]["wifi"]["down"]["lost"]


def _queue_dropped(run: Run) -> int:
    return run["links"]["wifi"]["down"]["queue_dropped"]
