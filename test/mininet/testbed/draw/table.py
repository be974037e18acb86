# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo's figures as a table, for the terminal and for the page."""

from __future__ import annotations

from ..loads.apps import human_bytes
from .demodata import Call, Download

DOWNLOAD_HEAD = [
    "download",
    "off",
    "on",
    "no loss",
    "on / off",
    "on / no loss",
    "repaired in time",
    "needless copies",
]
CALL_HEAD = ["call", "frame delay p50", "p90", "p99", "frames lost"]
_CALL_NAMES = {"off": "off", "on": "on", "lossless": "no loss"}


def download_rows(downloads: list[Download]) -> list[list[str]]:
    """Medians, goodput in Mbit/s."""
    rows = []
    for download in downloads:
        off, on = download.median(download.off), download.median(download.on)
        rows.append(
            [
                human_bytes(download.size),
                _form(off, "{:.2f}"),
                _form(on, "{:.2f}"),
                _form(download.lossless, "{:.2f}"),
                _form(_ratio(on, off), "{:.2f} x"),
                _form(_ratio(on, download.lossless), "{:.2f}"),
                _form(_times(download.recall, 100), "{:.0f} %"),
                _form(download.unneeded_percent, "{:.1f} %"),
            ]
        )
    return rows


def call_rows(call: Call) -> list[list[str]]:
    """One row each for off, on, and without loss."""
    return [
        [
            name,
            *(_form(call.percentiles[kind][p], "{:.0f} ms") for p in ("p50", "p90", "p99")),
            str(call.lost(kind)),
        ]
        for kind, name in _CALL_NAMES.items()
        if getattr(call, f"frames_{kind}")
    ]


def benefit_lines(benefit: dict) -> list[str]:
    """What the router said of its own downloads, and what is true."""
    medians = f"medians {benefit['on']:.2f} and {benefit['off']:.2f} Mbit/s"
    return [
        f"What the router says (pemi benefit): {benefit['sentence']}",
        f"What is true: {benefit['truth']:.2f} times, the median of all quotients of "
        f"{benefit['count']} downloads with help for all and as many without ({medians}); it is "
        f"{'in' if benefit['held'] else 'NOT in'} the interval.",
    ]


def text(head: list[str], rows: list[list[str]]) -> str:
    """Columns as wide as they need to be, figures to the right."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = []
    for row in [head, ["-" * width for width in widths], *rows]:
        first, *others = zip(row, widths, strict=True)
        words = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        lines.append("  ".join(words))
    return "\n".join(lines)


def _form(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
