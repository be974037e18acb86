# SPDX-License-Identifier: GPL-2.0-or-later
"""Does the runs of an experiment that are missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import experiment
from ..draw.progress import Progress
from ..measure.result import Run, headline, lateness_us, own_drops
from ..series import describe, require_root
from ..setups import Setup
from ..world import interruption
from ..world.process import ExperimentError, GaveUp
from .plan import Plan, Point
from .store import Store

# A run in which the emulator itself lost packets tells nothing; the machine was busy.
_TRIES = 3
# Nor does one in which packets came later than they should by more than a round trip of a Wi-Fi
# hop, where the order of events is what a helper judges by. On a quiet machine it is a tenth.
LATE_US = 2000
# Nor one in the middle of which this program did not run for as long as this: the machine was
# halted, or something with real-time priority left others a twentieth of each second.
STILL_S = 0.5


def disturbed(run: Run) -> bool:
    """Whether something else kept the machine too busy for this run to be trusted."""
    return lateness_us(run) > LATE_US or run.get("stood_still_s", 0) > STILL_S


@dataclass(frozen=True)
class Failure:
    """A run that could not be done, and why."""

    point: Point
    message: str
    # The client gave up, and nothing else was amiss.
    gave_up: bool = False


def judged(
    failures: Sequence[Failure], records: Sequence[tuple[Point, Run]]
) -> tuple[list[Failure], list[Failure]]:
    """Those that are a result, and those that are none. A client that gives up without help is
    told so by its links; with help it is a result if it does the same without, over the same
    losses. Where nothing is lost nobody gives up, and a stack that never comes to an end is
    broken."""
    alone = {
        _conditions(failure.point)
        for failure in failures
        if failure.gave_up and failure.point.values["assist"] == "off" and _lossy(failure.point)
    }
    alive = {_client(point) for point, _ in records}
    results, others = [], []
    for failure in failures:
        point = failure.point
        expected = failure.gave_up and _lossy(point) and _client(point) in alive
        found = results if expected and _conditions(point) in alone else others
        found.append(failure)
    return results, others


def _conditions(point: Point) -> tuple:
    return tuple((name, value) for name, value in point.values.items() if name != "assist")


def _client(point: Point) -> tuple[str, str]:
    return point.setup.app.name, point.setup.app.stack


def _lossy(point: Point) -> bool:
    return point.setup.scenario != point.setup.scenario.lossless()


def check(plan: Plan) -> None:
    """What is missing is said before the first run, not in the middle of a night."""
    require_root()
    for point in plan.points:
        point.setup.check()


def carry_out(
    plan: Plan, store: Store, say: Callable[[str], None]
) -> tuple[list[tuple[Point, Run]], list[Failure]]:
    """All runs of the plan, old and new. One that fails does not stop the others: an
    experiment of a night is not to end with its first hour."""
    # One run may stand in several places, as that without loss does.
    setups = dict.fromkeys(point.setup for point in plan.points)
    done = {setup: run for setup in setups if (run := store.get(setup)) is not None}
    missing = [
        point for point in plan.points if point.setup not in done or disturbed(done[point.setup])
    ]
    missing = list({point.setup: point for point in missing}.values())
    if done:
        say(f"{plan.name}: {len(setups) - len(missing)} of {len(setups)} runs are there already")
    failures = []
    progress = Progress([point.setup.expected_s for point in missing])
    try:
        for point in missing:
            interruption.check()
            progress.begin(f"{plan.name}: {describe(point.setup)}")
            try:
                run = undisturbed(point.setup, done.get(point.setup), progress.tick)
            except ExperimentError as error:
                failures.append(Failure(point, str(error), isinstance(error, GaveUp)))
                progress.end(f"no result: {str(error).splitlines()[0]}")
                continue
            store.put(point.setup, run)
            done[point.setup] = run
            progress.end(headline(run))
    finally:
        progress.clear()
    records = [(point, done[point.setup]) for point in plan.points if point.setup in done]
    return records, failures


def undisturbed(setup: Setup, best: Run | None, tick: Callable[[], None]) -> Run:
    """The first run that nothing disturbed, else the one that was disturbed least."""
    for _ in range(_TRIES):
        run = experiment.run(setup, tick=tick)
        if own_drops(run):
            continue
        if best is None or not disturbed(run) or lateness_us(run) < lateness_us(best):
            best = run
        if not disturbed(best):
            break
    if best is None:
        raise ExperimentError(
            f"the link emulator dropped {own_drops(run)} packets of its own accord in each of "
            f"{_TRIES} tries: this machine is too busy or too slow for it"
        )
    return best
