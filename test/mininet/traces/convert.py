#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Converts recordings of real Wi-Fi, from a checkout of who published them, into our traces.

Each recording becomes DIR/NAME.toml, which `run.py --trace1` takes, and beside it DIR/NAME.delay
or DIR/NAME.rate. The TOML file says whose recording it was and under which licence. What the
sources are, and what such a recording can tell, is in README.md beside this.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

# The delays of a trace are of intervals of this length (linkem's --delay-trace).
DELAY_STEP_MS = 10
# What a delivery opportunity carries (linkem's --trace).
OPPORTUNITY_BITS = 1500 * 8
# A recording of delays does not tell the least one, as nobody knows how far the two clocks were
# apart. This is run.py's usual delay of a Wi-Fi hop.
LEAST_DELAY_MS = 1.0
# The longest delay that linkem takes. Where a recording has a longer one, the sender had begun a
# new stream, whose times begin anywhere.
LONGEST_DELAY_MS = 60_000
# The clocks of sampled sound, and how far from its name a sender's clock may be.
RTP_HZ = (8_000, 16_000, 22_050, 32_000, 44_100, 48_000, 88_200, 96_000)
RTP_TOLERANCE = 0.01
# RTP counts its time in 32 bits.
RTP_WRAP = 1 << 32
# The two clocks drift apart; how far is read off the least delay of each span of this length,
# which nearly always has a packet that met no obstacle.
DRIFT_SPAN_MS = 30_000


class ConvertError(Exception):
    """A recording that is not there or not what it should be; the message names the place."""


@dataclass(frozen=True)
class Source:
    """Who published recordings, where they are in a checkout, and how they are read."""

    repository: str
    licence: str
    # Of the recordings; their names are what follows this folder.
    folder: str
    patterns: tuple[str, ...]
    # `delay` or `rate`: what the recording is of.
    kind: str


SOURCES = {
    "roc": Source(
        repository="roc-streaming/qa",
        licence="none is stated: for your own use, not to be passed on",
        folder="reports",
        patterns=(
            "20241230_gh674_clock_offset/*.csv.xz",
            "20250210_gh712_peak_jitter/*/roc_recv.csv.xz",
        ),
        kind="delay",
    ),
    "zhuge": Source(
        repository="transys-project/zhuge",
        licence="AGPL-3.0",
        folder="ns-3.34-diff/real-exp/traces",
        patterns=("office-wifi_*.pitree-trace", "rest-wifi_*.pitree-trace", "rest1_*.pitree-trace"),
        kind="rate",
    ),
    "solis": Source(
        repository="GreenLv/Solis-WiFi-Trace",
        licence="MIT, Copyright (c) 2023 Gerui Lv",
        folder="traces",
        patterns=("wifi_*.txt",),
        kind="rate",
    ),
}


def rows(path: Path) -> Iterator[tuple[str, str]]:
    """The lines that are not blank, each with the words that name its place."""
    try:
        data = path.read_bytes()
        text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode()
    except (OSError, lzma.LZMAError, UnicodeDecodeError) as error:
        expected = "an xz archive of text" if path.suffix == ".xz" else "a text file"
        raise ConvertError(f"{path}: expected {expected}: {error}") from error
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield f"{path}, line {number}", line.strip()


def rates(path: Path) -> list[tuple[float, float]]:
    """Of a file with two columns, seconds and Mbit/s: seconds since its begin, and Mbit/s."""
    found: list[tuple[float, float]] = []
    for where, line in rows(path):
        words = line.split()
        try:
            seconds, mbit = (float(word) for word in words)
        except ValueError:
            expected = "expected a time in s and a rate in Mbit/s"
            raise ConvertError(f"{where}: {expected}, not {line!r}") from None
        if not 0 <= mbit < math.inf or not math.isfinite(seconds):
            raise ConvertError(f"{where}: expected a rate of 0 Mbit/s or more, not {line!r}")
        if found and seconds < found[-1][0]:
            before = f"{found[-1][0]:g}"
            raise ConvertError(f"{where}: expected no time before {before} s, not {words[0]}")
        found.append((seconds, mbit))
    if len(found) < 2:
        raise ConvertError(f"{path}: expected two lines or more, as a rate lasts until the next")
    begin = found[0][0]
    if found[-1][0] <= begin:
        raise ConvertError(f"{path}: expected times that differ, not {begin:g} s on all lines")
    return [(seconds - begin, mbit) for seconds, mbit in found]


def opportunities(samples: list[tuple[float, float]]) -> list[int]:
    """Times in ms at which 1500 bytes may cross, evenly at each sample's rate. The last sample
    lasts as long as the usual one; there the trace begins again, so its end is a time, too."""
    # Whole µs and bit/s: a time that is a whole ms is not to become the next one by rounding.
    starts = [round(seconds * 1e6) for seconds, _ in samples]
    usual = round(statistics.median(after - before for before, after in pairwise(starts)))
    ends = [*starts[1:], starts[-1] + usual]
    times = []
    # Millionths of a bit: what passes at 1 bit/s in 1 µs.
    one, have = OPPORTUNITY_BITS * 10**6, 0
    for start, end, (_, mbit) in zip(starts, ends, samples, strict=True):
        rate = round(mbit * 1e6)
        until = have + rate * (end - start)
        for number in range(1, until // one + 1):
            us = start - (have - number * one) // rate
            times.append(-(-us // 1000))
        have = until % one
    last = -(-ends[-1] // 1000)
    return times if times and times[-1] == last else [*times, last]


def arrivals(path: Path) -> tuple[list[float], list[int]]:
    """Of a log of roc-recv: when each packet came, in ms since the first, and its RTP time."""
    times: list[float] = []
    stamps: list[int] = []
    first = 0
    for where, line in rows(path):
        if not line.startswith("m,"):
            # Of the receiver's own queue and clock.
            continue
        words = line.split(",")
        try:
            # The nanoseconds since 1970 are more than a float can hold.
            nanos, stamp = (int(word.partition(".")[0]) for word in words[1:3])
        except ValueError:
            expected = "expected `m,` and the arrival in ns and the RTP time"
            raise ConvertError(f"{where}: {expected}, not {line!r}") from None
        if not 0 <= stamp < RTP_WRAP:
            raise ConvertError(f"{where}: expected an RTP time of 32 bits, not {stamp}")
        if stamps:
            # The nearest time that has these 32 bits: it wraps, and packets may be reordered.
            ahead = (stamp - stamps[-1] + RTP_WRAP // 2) % RTP_WRAP - RTP_WRAP // 2
            stamp = stamps[-1] + ahead
        else:
            first = nanos
        times.append((nanos - first) / 1e6)
        stamps.append(stamp)
    if len(times) < 2 or times[-1] <= 0 or stamps[-1] <= stamps[0]:
        raise ConvertError(f"{path}: expected lines with `m,` of two packets or more, in time")
    return times, stamps


def clock(path: Path, times: list[float], stamps: list[int]) -> int:
    """The rate of the RTP clock, which the log does not say."""
    measured = (stamps[-1] - stamps[0]) / (times[-1] - times[0]) * 1000
    hz = min(RTP_HZ, key=lambda hz: abs(hz - measured))
    if abs(hz - measured) > RTP_TOLERANCE * hz:
        known = ", ".join(str(hz) for hz in RTP_HZ)
        raise ConvertError(f"{path}: expected an RTP clock of {known} Hz, not {measured:.0f}")
    return hz


def drift(sent: list[float], delays: list[float]) -> tuple[float, float]:
    """Where the least delay is at time 0, and how much it changes per ms."""
    least: dict[int, tuple[float, float]] = {}
    for at, delay in zip(sent, delays, strict=True):
        span = int(at // DRIFT_SPAN_MS)
        least[span] = min(least.get(span, (math.inf, 0.0)), (delay, at))
    # The last span may be too short to have a packet without an obstacle.
    points = [least[span] for span in sorted(least)]
    points = points[:-1] if len(points) > 2 else points
    if len(points) < 2:
        return points[0][0], 0.0
    line = statistics.linear_regression([at for _, at in points], [delay for delay, _ in points])
    return line.intercept, line.slope


def delays_by_interval(path: Path, times: list[float], stamps: list[int]) -> list[float]:
    """The delay in ms of what set out in each 10 ms: of the first packet there was. Where there
    was none, the log is taken to have one row for all that came at once: each of them waited
    10 ms less than the one before."""
    hz = clock(path, times, stamps)
    sent = [(stamp - stamps[0]) * 1000 / hz for stamp in stamps]
    raw = [time - at for time, at in zip(times, sent, strict=True)]
    offset, slope = drift(sent, raw)
    level = [delay - offset - slope * at for at, delay in zip(sent, raw, strict=True)]
    least = min(level)
    found: dict[int, float] = {}
    for at, delay in sorted(zip(sent, level, strict=True)):
        above = delay - least + LEAST_DELAY_MS
        if above > LONGEST_DELAY_MS:
            most = f"at most {LONGEST_DELAY_MS / 1000:g} s"
            raise ConvertError(
                f"{path}: expected delays of {most}, not {above / 1000:.1f} s for the packet "
                f"that was sent {at / 1000:.1f} s after the first: did a new stream begin?"
            )
        found.setdefault(int(at // DELAY_STEP_MS), above)
    filled: list[float] = []
    begins = sorted(found)
    for begin, end in zip(begins, [*begins[1:], begins[-1] + 1], strict=True):
        least = min(found[begin], found.get(end, found[begin]))
        waits = (found[begin] - DELAY_STEP_MS * later for later in range(end - begin))
        filled += (max(wait, least) for wait in waits)
    return filled


def delay_lines(path: Path) -> list[str]:
    """A delay trace of a log of roc-recv."""
    return [f"{delay:.2f}" for delay in delays_by_interval(path, *arrivals(path))]


def rate_lines(path: Path) -> list[str]:
    """A rate trace of two columns."""
    return [str(ms) for ms in opportunities(rates(path))]


CONVERTERS: dict[str, Callable[[Path], list[str]]] = {"delay": delay_lines, "rate": rate_lines}


def recordings(source: Source, checkout: Path) -> list[Path]:
    """All there are in the checkout."""
    folder = checkout / source.folder
    found = sorted({path for pattern in source.patterns for path in folder.glob(pattern)})
    if not found:
        patterns = " or ".join(source.patterns)
        raise ConvertError(
            f"{checkout}: expected a checkout of {source.repository}, "
            f"with {patterns} in {source.folder}"
        )
    return found


def trace_name(key: str, source: Source, checkout: Path, path: Path) -> str:
    """Of the recording's folders and name, without what follows the first dot."""
    inside = path.relative_to(checkout / source.folder)
    words = (*inside.parts[:-1], inside.name.partition(".")[0])
    return "-".join([key, *re.findall(r"[a-z0-9]+", " ".join(words).lower())])


def commit(checkout: Path) -> str:
    """`@` and the commit of a git checkout; nothing of what is none."""
    # Only of the folder itself: it may lie unpacked in a repository of another kind.
    if not (checkout / ".git").exists():
        return ""
    command = ["git", "-C", str(checkout), "rev-parse", "--short=7", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return f"@{answer.stdout.strip()}" if answer.returncode == 0 else ""


def header(source: Source, origin: str, inside: str, kind: str, file: str) -> str:
    """The TOML file. A recording has one direction and serves for both: the air is shared."""
    # JSON's strings are TOML's.
    # Some were made to compare with.
    medium = "Ethernet" if "--ether" in inside else "Wi-Fi"
    title = json.dumps(f"{medium} as recorded: {inside}", ensure_ascii=False)
    lines = [
        f"title = {title}",
        f"source = {json.dumps(f'{origin} {source.folder}/{inside}', ensure_ascii=False)}",
        f"licence = {json.dumps(source.licence)}",
    ]
    for direction in ("down", "up"):
        lines += ["", f"[{direction}]", f"{kind} = {json.dumps(file)}"]
    return "\n".join(lines) + "\n"


def convert(key: str, checkout: Path, out: Path) -> list[Path]:
    """Converts all recordings of a source; returns the TOML files."""
    source = SOURCES[key]
    origin = source.repository + commit(checkout)
    made = []
    for path in recordings(source, checkout):
        name = trace_name(key, source, checkout, path)
        lines = CONVERTERS[source.kind](path)
        file = f"{name}.{source.kind}"
        inside = path.relative_to(checkout / source.folder).as_posix()
        try:
            out.mkdir(parents=True, exist_ok=True)
            (out / file).write_text("\n".join(lines) + "\n")
            config = out / f"{name}.toml"
            config.write_text(header(source, origin, inside, source.kind, file))
        except OSError as error:
            raise ConvertError(f"--out {out}: {error}") from error
        made.append(config)
    return made


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="convert.py", description=__doc__.splitlines()[0])
    parser.add_argument("source", choices=SOURCES, help="whose recordings they are")
    parser.add_argument("checkout", type=Path, help="the folder of their repository")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where traces go")
    options = parser.parse_args(arguments)
    try:
        made = convert(options.source, options.checkout, options.out)
    except ConvertError as error:
        parser.exit(2, f"convert.py: error: {error}\n")
    licence = SOURCES[options.source].licence
    print(f"{len(made)} traces in {options.out}; licence of the recordings: {licence}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
