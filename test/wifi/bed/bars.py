# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of what exact repair is worth: figures of rows, and which bars they hold."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from testbed.loads.apps import human_bytes

from .rows import VARIANTS, Bar, Row

Run = dict
HEAD = [
    *("air", "load", "WAN, Mbit/s", *VARIANTS),
    *("radio / lossless", "radio / off", "10th percentile / lossless"),
    *("lost", "copies per loss, infer", "radio"),
    *("processor busy, lossless", "radio", "bar", "holds"),
]
_NOTHING = "-"
_STACKS = {
    "quinn": "quinn",
    "quicgo": "quic-go",
    "s2n": "s2n-quic",
    "curl": "libcurl",
    "tcp": "TCP",
}


@dataclass(frozen=True)
class Figures:
    """Of one row, over all seeds."""

    # Mbit/s, or ms of a call's latest frames.
    medians: dict[str, float]
    tenth: float
    # On the air, of the runs with `radio`.
    lost: int
    # For each loss; none where nothing was lost.
    copies: dict[str, float | None]
    copies_sent: int
    # Of the guest's one processor.
    busy: dict[str, float]
    frames_lost: int

    @property
    def of_lossless(self) -> float:
        """The median of `radio` against that where nothing fails."""
        return self.medians["radio"] / self.medians["lossless"]

    @property
    def of_off(self) -> float:
        """The median of `radio` against that without help."""
        return self.medians["radio"] / self.medians["off"]

    @property
    def tenth_of_lossless(self) -> float:
        """What nine of ten runs with `radio` reach."""
        return self.tenth / self.medians["lossless"]


def figures(runs: list[Run]) -> Figures:
    """Of all runs of one row."""
    parts = {name: [run for run in runs if _variant(run) == name] for name in VARIANTS}
    values = {name: sorted(map(_value, part)) for name, part in parts.items()}
    radio = values["radio"]
    return Figures(
        medians={name: statistics.median(part) for name, part in values.items()},
        # By nearest rank.
        tenth=radio[-(-len(radio) // 10) - 1],
        lost=sum(map(_lost, parts["radio"])),
        copies={name: _copies_per_loss(parts[name]) for name in ("infer", "radio")},
        copies_sent=sum(map(_copies, parts["radio"])),
        busy={
            name: statistics.median(run["processor_busy"] for run in parts[name])
            for name in ("lossless", "radio")
        },
        frames_lost=sum(run["metrics"].get("frames_lost", 0) for run in parts["radio"]),
    )


def holds(bar: Bar, found: Figures) -> list[tuple[str, bool]]:
    """What the bar asks, each in words and with whether it is so."""
    copies = found.copies["radio"]
    ratios = (
        (bar.of_lossless, found.of_lossless, ">= {:g} of lossless"),
        (bar.of_off, found.of_off, ">= {:g} x off"),
        (bar.tenth_of_lossless, found.tenth_of_lossless, "10th >= {:g} of lossless"),
    )
    asked = [
        (words.format(least), value >= least) for least, value, words in ratios if least is not None
    ]
    if bar.copies == 0:
        asked.append(("no copy", found.copies_sent == 0))
    elif bar.copies is not None:
        words = f"copies <= {bar.copies:g} x losses"
        asked.append((words, copies is None or copies <= bar.copies))
    for name, limit in (("lossless", bar.behind_lossless_ms), ("off", bar.behind_off_ms)):
        if limit is not None:
            within = found.medians["radio"] <= found.medians[name] + limit
            words = f"p99 <= {name}{f' + {limit:g} ms' if limit else ''}"
            asked.append((words, within))
    if bar.behind_lossless_ms is not None:
        asked.append(("no frame lost", found.frames_lost == 0))
    return asked


def cells(row: Row, runs: list[Run]) -> list[str]:
    """A line of the table."""
    found = figures(runs)
    asked = holds(row.bar, found)
    load = f"{_STACKS[row.stack]}, "
    load += human_bytes(row.bytes) if row.bytes else "call, p99 in ms"
    # Of delays less is better, and what a quotient means is another question.
    quotients = (found.of_lossless, found.of_off, found.tenth_of_lossless)
    shares = [f"{share:.2f}" if row.bytes else _NOTHING for share in quotients]
    copies = [
        _NOTHING if share is None else f"{share:.2f}"
        for share in (found.copies["infer"], found.copies["radio"])
    ]
    failed = [words for words, held in asked if not held]
    return [
        *(f"`{row.air}`", load, f"{row.wan.mbit:g}"),
        *(f"{found.medians[name]:.3g}" for name in VARIANTS),
        *(*shares, str(found.lost), *copies),
        *(f"{found.busy[name]:.2f}" for name in ("lossless", "radio")),
        ", ".join(words for words, _ in asked),
        "yes" if not failed else f"not {', '.join(failed)}",
    ]


def _variant(run: Run) -> str:
    return "lossless" if run["lossless"] else run["assist"]


def _value(run: Run) -> float:
    metrics = run["metrics"]
    return metrics["frame_delay_ms"]["p99"] if run["app"] == "rtc" else metrics["goodput_mbps"]


def _lost(run: Run) -> int:
    return run["links"]["wifi"]["down"]["lost"]


def _copies(run: Run) -> int:
    """As the daemon counts them: of TCP the air's log cannot tell what is one."""
    return run["router"]["status"]["resent"]["packets"]


def _copies_per_loss(runs: list[Run]) -> float | None:
    lost = sum(map(_lost, runs))
    return sum(map(_copies, runs)) / lost if lost else None
