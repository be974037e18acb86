# SPDX-License-Identifier: GPL-2.0-or-later
"""`--mm-config FILE.toml` and `--trace1 FILE.toml`: a link as it was recorded, or as our
generator makes one."""

from __future__ import annotations

import functools
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from .programs import ROOT

GENERATOR = ROOT / "test/mininet/traces/generate.py"
CACHE = ROOT / "out/traces"
# Where traces are that cannot be part of the repository.
FOREIGN = "PEMI_TRACES"
# linkem's options of the files that a direction can have.
_OPTIONS = {
    "rate": "--trace",
    "delay": "--delay-trace",
    "light": "--cellreplay-light",
    "heavy": "--cellreplay-heavy",
    "offset": "--cellreplay-offset",
}
# Which of them make a link: mahimahi, delays alone, LeoReplayer, CellReplay with and without
# offsets.
_LINKS = (
    {"rate"},
    {"delay"},
    {"rate", "delay"},
    {"light", "heavy"},
    {"light", "heavy", "offset"},
)
_OPPORTUNITY_BYTES = {"rate": 1500, "heavy": 1400}


class TraceError(ValueError):
    """A trace that is not there or makes no sense, in words for a person."""


@dataclass(frozen=True)
class Direction:
    """The recordings of one direction by the names of the TOML file, sorted."""

    files: tuple[tuple[str, Path], ...]

    def options(self, suffix: str) -> dict[str, str]:
        """linkem's."""
        return {f"{_OPTIONS[name]}-{suffix}": str(path) for name, path in self.files}

    @property
    def mean_mbit(self) -> float | None:
        """What it can carry on average, where that was recorded."""
        rates = [item for item in self.files if item[0] in _OPPORTUNITY_BYTES]
        if not rates:
            return None
        name, path = rates[0]
        return round(_per_ms(path) * _OPPORTUNITY_BYTES[name] * 8 / 1000, 3)

    @property
    def delay_ms(self) -> float | None:
        """The usual one-way delay, where it was recorded."""
        for name, column in (("delay", 0), ("light", 1)):
            if name in dict(self.files):
                return statistics.median(_column(dict(self.files)[name], column))
        return None


@dataclass(frozen=True)
class Traces:
    """A link by traces."""

    name: str
    down: Direction
    up: Direction

    @property
    def delay_ms(self) -> float | None:
        """The usual one-way delay, where it was recorded; of the two directions the mean."""
        delays = (self.down.delay_ms, self.up.delay_ms)
        return None if None in delays else statistics.mean(delays)

    def to_json(self) -> dict[str, str]:
        """For the result file: a name, and what tells other traces of this name from these."""
        content = hashlib.sha256()
        for direction in (self.down, self.up):
            for name, path in direction.files:
                content.update(name.encode() + path.read_bytes())
        return {"name": self.name, "sha256": content.hexdigest()}


def read(config: Path) -> Traces:
    """Reads the file, or the one of this name among our own, and makes sure that there
    is what it names."""
    if config.name == str(config) and not config.suffix:
        config = GENERATOR.with_name(f"{config}.toml")
    try:
        table = tomllib.loads(config.read_text())
    except OSError as error:
        raise TraceError(f"cannot read {config}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{config}: {error}") from error
    # Where a recording is from is for people.
    unknown = set(table) - {"title", "source", "licence", "down", "up", "generate"}
    if unknown:
        raise TraceError(f"{config}: there is no {min(unknown)!r} in such a file")
    if "generate" in table:
        if {"down", "up"} & set(table):
            raise TraceError(f"{config}: [generate] makes the files that [down] and [up] name")
        return _generated(config, table["generate"])
    found = Traces(config.stem, *(_direction(config, table, name) for name in ("down", "up")))
    # What is no trace is better said now than by linkem in the middle of a series.
    for direction in (found.down, found.up):
        _ = direction.mean_mbit, direction.delay_ms
    return found


def _direction(config: Path, table: dict, name: str) -> Direction:
    part = table.get(name)
    if not isinstance(part, dict) or not all(isinstance(file, str) for file in part.values()):
        raise TraceError(f"{config}: [{name}] with names of files is missing")
    if set(part) not in _LINKS:
        raise TraceError(
            f"{config}: [{name}] takes rate, delay or both, or light and heavy (and offset), "
            f"not {', '.join(sorted(part)) or 'nothing'}"
        )
    files = sorted((key, _find(config, file)) for key, file in part.items())
    return Direction(tuple(files))


def _find(config: Path, name: str) -> Path:
    """Beside the TOML file, or among the traces that are not ours to keep."""
    folders = [config.parent]
    foreign = os.environ.get(FOREIGN)
    if foreign:
        folders.insert(0, Path(foreign))
    for folder in folders:
        if (folder / name).is_file():
            return (folder / name).resolve()
    where = f"nor in {FOREIGN}={foreign}" if foreign else f"and {FOREIGN} is not set"
    raise TraceError(f"{config}: {name} is not beside it {where}")


def _generated(config: Path, how: object) -> Traces:
    wanted = {"kind": str, "seed": int, "seconds": int}
    if (
        not isinstance(how, dict)
        or set(how) != set(wanted)
        or not all(isinstance(how[key], kind) for key, kind in wanted.items())
    ):
        raise TraceError(f"{config}: [generate] takes kind, seed and seconds")
    # Another generator makes other traces.
    version = hashlib.sha256(GENERATOR.read_bytes()).hexdigest()[:8]
    folder = CACHE / f"{how['kind']}-seed{how['seed']}-{how['seconds']}s-{version}"
    if not folder.is_dir():
        _generate(config, how, folder)
    return Traces(config.stem, *(_made(folder, name) for name in ("down", "up")))


def _made(folder: Path, name: str) -> Direction:
    """What the generator made of a direction; its delays may be those of both."""
    found = {"rate": [folder / name], "delay": [folder / f"{name}-delay", folder / "delay"]}
    files = ((key, path) for key, paths in found.items() for path in paths if path.is_file())
    return Direction(tuple(sorted(files)))


def _generate(config: Path, how: dict, folder: Path) -> None:
    """Whole or not at all: other runs may want the same at this moment."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        made = Path(scratch) / "made"
        options = [f"--{key}={value}" for key, value in how.items()]
        command = [sys.executable, str(GENERATOR), *options, f"--out={made}"]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode != 0:
            raise TraceError(f"{config}: {answer.stderr.strip().splitlines()[-1]}")
        try:
            made.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise


def _per_ms(path: Path) -> float:
    """How many opportunities there are on average."""
    try:
        about = path.stat()
    except OSError as error:
        raise TraceError(f"{path} is not a trace: {error}") from error
    return _count_per_ms(path, about.st_mtime_ns, about.st_size)


# A fast link's trace has a line each 0.2 ms, and every line of an experiment asks for it.
@functools.cache
def _count_per_ms(path: Path, _mtime_ns: int, _size: int) -> float:
    times = _column(path, 0)
    if times[-1] <= 0:
        raise TraceError(f"{path}: the last time must be greater than 0")
    return len(times) / times[-1]


def _column(path: Path, number: int) -> list[float]:
    try:
        lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
        values = [float(words[number]) for words in lines]
    except (ValueError, IndexError, OSError) as error:
        raise TraceError(f"{path} is not a trace: {error}") from error
    if not values:
        raise TraceError(f"{path} is empty")
    return values
