# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo's figures: taken from its result file, for the table and the drawings."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from ..measure import quotient, result
from ..measure.result import Run


@dataclass(frozen=True)
class Download:
    """All runs of one size; goodput in Mbit/s."""

    size: int
    off: list[float]
    on: list[float]
    lossless: float | None
    recall: float | None
    unneeded_percent: float | None

    @staticmethod
    def median(values: list[float]) -> float | None:
        """None if there are none."""
        return statistics.median(values) if values else None


@dataclass(frozen=True)
class Call:
    """All runs of the video call; delays in milliseconds, of the frames that came."""

    off: list[float]
    on: list[float]
    lossless: list[float]
    frames_off: int
    frames_on: int
    frames_lossless: int
    percentiles: dict[str, dict[str, float]]

    def lost(self, kind: str) -> int:
        """Frames that never came, of `off`, `on` or `lossless`."""
        return getattr(self, f"frames_{kind}") - len(getattr(self, kind))


def runs_by_kind(document: dict) -> dict[str, list[Run]]:
    """`off` and `on` at the demo's loss, and `lossless`."""
    kinds: dict[str, list[Run]] = {"off": [], "on": [], "lossless": []}
    for part in document["results"]:
        scenario = part["scenario"]
        lossy = bool(scenario["loss1"] or scenario["loss1ge"] or scenario["outages1"])
        for run in part["runs"]:
            assisted = "off" if run["assist"] == "off" else "on"
            kinds[assisted if lossy else "lossless"].append(run)
    return kinds


def downloads(document: dict) -> list[Download]:
    """By size, smallest first."""
    kinds = runs_by_kind(document)
    sizes = sorted({run["bytes"] for run in kinds["off"] if run["app"] == "goodput"})
    found = []
    for size in sizes:
        off, on, lossless = (
            result.select(kinds[kind], app="goodput", bytes=size) for kind in kinds
        )
        found.append(
            Download(
                size=size,
                off=[result.goodput(run) for run in off],
                on=[result.goodput(run) for run in on],
                lossless=result.median(lossless, result.goodput),
                recall=_inference(on, "recall"),
                unneeded_percent=_inference(on, "unneeded_percent"),
            )
        )
    return found


def call(document: dict) -> Call | None:
    """None if the demo had no call."""
    kinds = {kind: result.select(runs, app="rtc") for kind, runs in runs_by_kind(document).items()}
    if not any(kinds.values()):
        return None
    delays = {
        kind: [ms for run in runs for ms in run["metrics"]["delays_ms"] if ms is not None]
        for kind, runs in kinds.items()
    }
    frames = {kind: sum(run["metrics"]["frames"] for run in runs) for kind, runs in kinds.items()}
    percentiles = {
        kind: {
            name: result.median(runs, lambda run, n=name: run["metrics"]["frame_delay_ms"][n])
            for name in ("p50", "p90", "p99")
        }
        for kind, runs in kinds.items()
    }
    return Call(
        **delays,
        **{f"frames_{kind}": count for kind, count in frames.items()},
        percentiles=percentiles,
    )


def benefit(document: dict) -> dict[str, object] | None:
    """What the router said of its own, beside the truth; None if the demo did not ask."""
    kinds = runs_by_kind(document)
    runs = {kind: result.select(runs, app="downloads") for kind, runs in kinds.items()}
    compared = [run for run in runs["on"] if "benefit" in run["router"]]
    helped = [run for run in runs["on"] if "benefit" not in run["router"]]
    if not compared:
        return None
    return quotient.beside_the_truth(compared[0], helped[0], runs["off"][0])


def _inference(runs: list[Run], name: str) -> float | None:
    return result.median(runs, lambda run: (run["inference"] or {}).get(name))
