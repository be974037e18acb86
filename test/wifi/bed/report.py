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

# Stacks of each table, in the order in which they stand.
_STACKS = ("quinn", "quicgo")
_NOTHING = "none"


def commit() -> str:
    """Of the tree that was measured; with a mark if it is not what is committed."""
    what = ("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10")
    return subprocess.run(what, capture_output=True, text=True, check=True).stdout.strip()


def markdown(runs: list[Run], presets: list[Preset], made: dict[str, object]) -> str:
    """The whole of RESULTS.md."""
    parts = ["# What the Wi-Fi guest measured", "", _words(made), ""]
    for title, head, rows in _tables(runs, presets):
        parts += [f"## {title}", "", _row(head), _row(["---"] * len(head)), *map(_row, rows), ""]
    return "\n".join(parts)


def page(runs: list[Run], presets: list[Preset], made: dict[str, object]) -> str:
    """The same for a browser."""
    body = "<h1>PEMI over a real 802.11 stack</h1>" + f"<p>{_words(made)}</p>"
    for title, head, rows in _tables(runs, presets):
        body += html.section(title, "", (), None, html.table(head, rows))
    return html.document("PEMI over a real 802.11 stack", body)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _words(made: dict[str, object]) -> str:
    seeds = f"seeds 1 to {made['seeds']}" if made["seeds"] > 1 else "one seed, which is little:"
    seeds += " of the air" if made["seeds"] > 1 else " how many losses there are is chance"
    return (
        f"Figures of `make wifi` on {made['date']}, commit {made['commit']}, Debian's Linux "
        f"{made['kernel']}, {made['part']}; {seeds}. WAN 10 Mbit/s, 20 ms each way, "
        "a queue of 60 packets. Times are the guest's and do not depend on the machine. Medians "
        "of the seeds; the row of `clean` is what every other one would be if nothing failed on "
        "the air (`lossless`)."
    )


def _tables(runs: list[Run], presets: list[Preset]) -> Iterable[tuple[str, list[str], list]]:
    for stack in _STACKS:
        of = _of(runs, app="goodput", stack=stack)
        if of:
            yield _downloads(stack, of, presets)
    for stack in _STACKS:
        of = _of(runs, app="rtc", stack=stack)
        if of:
            yield _delays(f"Video calls with {stack}: delay of a frame, ms", of, presets)
    of = _of(runs, app="media")
    if of:
        yield _delays("Voice from the client: de-jitter latency of a packet, ms", of, presets)
    yield (
        "The presets",
        ["preset", "what it is"],
        [[f"`{preset.name}`", preset.about] for preset in presets],
    )


def _downloads(
    stack: str, runs: list[Run], presets: list[Preset]
) -> tuple[str, list[str], list[list[str]]]:
    head = ["preset", "off, Mbit/s", "pemi, Mbit/s", "pemi / off", "lost on the air, off / pemi"]
    head += ["copies", "of them needless", "repaired in time"]
    rows = []
    for preset, off, on in _pairs(runs, presets):
        before, after = (_median(part, _goodput) for part in (off, on))
        rows.append(
            [
                f"`{preset.name}`",
                f"{before:.3g}",
                f"{after:.3g}",
                f"{after / before:.2f}",
                " / ".join(str(sum(map(_lost, part))) for part in (off, on)),
                str(sum(run["inference"]["copies"] for run in on)),
                str(sum(_needless(run) for run in on)),
                str(sum(run["inference"]["repaired"] for run in on)),
            ]
        )
    size = runs[0]["bytes"] // 1_000_000
    return f"Downloads of {size} MB with {stack}", head, rows


def _delays(
    title: str, runs: list[Run], presets: list[Preset]
) -> tuple[str, list[str], list[list[str]]]:
    head = ["preset", "off p50", "p99", "pemi p50", "p99"]
    rows = []
    for preset, off, on in _pairs(runs, presets):
        row = [f"`{preset.name}`"]
        for part in (off, on):
            for name in ("p50", "p99"):
                value = _median(part, lambda run, name=name: _delay(run)[name])
                row.append(_NOTHING if value is None else f"{value:.3g}")
        rows.append(row)
    return title, head, rows


def _delay(run: Run) -> dict[str, float | None]:
    metrics = run["metrics"]
    return metrics.get("frame_delay_ms") or metrics["dejitter_ms"]


def _pairs(runs: list[Run], presets: list[Preset]) -> Iterable[tuple[Preset, list[Run], list[Run]]]:
    """The presets that have been run, without PEMI and with it."""
    for preset in presets:
        off, on = (_of(runs, preset=preset.name, assist=assist) for assist in ("off", "pemi"))
        if off and on:
            yield preset, off, on


def _of(runs: list[Run], **wanted: object) -> list[Run]:
    return [run for run in runs if all(run[key] == value for key, value in wanted.items())]


def _median(runs: list[Run], value: Callable[[Run], float | None]) -> float | None:
    found = [number for run in runs if (number := value(run)) is not None]
    return statistics.median(found) if found else None


def _goodput(run: Run) -> float:
    return run["metrics"]["goodput_mbps"]


def _lost(run: Run) -> int:
    return run["links"]["wifi"]["down"]["lost"]


def _needless(run: Run) -> int:
    return run["inference"]["copies"] - run["inference"]["copies_needed"]
