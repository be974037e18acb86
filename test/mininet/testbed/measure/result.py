# SPDX-License-Identifier: GPL-2.0-or-later
"""The result file: made of runs, written whole or not at all."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from ..world.scenario import Scenario

Run = dict


def document(results: list[tuple[Scenario, list[Run]]]) -> dict[str, object]:
    """One result, or several of them under `results`."""
    parts = [{"scenario": scenario.to_json(), "runs": runs} for scenario, runs in results]
    return parts[0] if len(parts) == 1 else {"results": parts}


def write_json(path: Path, content: object) -> None:
    """As text, and whole."""
    write_text(path, json.dumps(content, indent=1) + "\n")


def write_text(path: Path, content: str) -> None:
    """A reader sees the old file or the complete new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def median(runs: Iterable[Run], value: Callable[[Run], float | None]) -> float | None:
    """The median over the runs that have this value."""
    values = [found for run in runs if (found := value(run)) is not None]
    return statistics.median(values) if values else None


def select(runs: Iterable[Run], **wanted: object) -> list[Run]:
    """The runs with these values, e.g. `assist="pemi", bytes=5_000_000`."""
    return [run for run in runs if all(run[key] == value for key, value in wanted.items())]


def goodput(run: Run) -> float | None:
    """Mbit/s."""
    return run["metrics"].get("goodput_mbps")


def headline(run: Run) -> str:
    """A run in a few words."""
    metrics, inference = run["metrics"], run["inference"]
    words = []
    if metrics.get("goodput_mbps") is not None:
        words.append(f"{metrics['goodput_mbps']:.2f} Mbit/s")
    if metrics.get("share") is not None:
        others = ", ".join(f"{rate:.2f}" for rate in metrics["beside_mbps"])
        words.append(f"{metrics['rate_mbps']:.2f} Mbit/s beside {others}")
    delay = metrics.get("frame_delay_ms")
    if delay:
        words.append(f"frame delay p50 {delay['p50']:.0f} p99 {delay['p99']:.0f} ms")
    waits = metrics.get("dejitter_ms")
    if waits:
        words.append(f"de-jitter p50 {waits['p50']:.1f} p99 {waits['p99']:.1f} ms")
        words.append(f"{metrics['missing']} of {metrics['frames']} packets missing")
    overhead = metrics.get("overhead")
    if overhead:
        words.append(f"{overhead['quacks']} quACKs, {overhead['quack_percent']:.1f} % of the flow")
    connect = metrics.get("connect_ms")
    if connect:
        words.append(f"answer after p50 {connect['p50']:.0f} p99 {connect['p99']:.0f} ms")
    if inference and run["assist"] != "off":
        recall = inference["recall"]
        words.append(f"{inference['repaired']} of {inference['losses']} losses repaired in time")
        if recall is not None:
            words[-1] += f" ({recall:.2f})"
        words.append(f"{inference['unneeded_percent'] or 0:.1f} % needless copies")
    drops = own_drops(run)
    if drops:
        words.append(f"CAUTION: the emulator itself dropped {drops} packets")
    return ", ".join(words)


def lateness_us(run: Run) -> int:
    """How late the emulated links were, 99th percentile of the worst of them: what they did to
    the packets beside what was asked for."""
    return max(
        (
            direction["lateness_us"]["p99"]
            for hop in (run["links"] or {}).values()
            for direction in hop.values()
        ),
        default=0,
    )


def own_drops(run: Run) -> int:
    """Packets the emulator lost for want of time: if there are any, the run tells nothing."""
    return sum(
        direction["own_drops"]
        for hop in (run["links"] or {}).values()
        for direction in hop.values()
    )
