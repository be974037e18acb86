"""Does the runs of an experiment that are missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import experiment, interruption
from ..process import ExperimentError
from ..progress import Progress
from ..result import Run, headline, own_drops
from ..series import describe, require_root
from .plan import Plan, Point
from .store import Store

# A run in which the emulator itself lost packets tells nothing; the machine was busy.
_TRIES = 3


@dataclass(frozen=True)
class Failure:
    """A run that could not be done, and why."""

    point: Point
    message: str


def check(plan: Plan) -> None:
    """What is missing is said before the first run, not in the middle of a night."""
    require_root()
    for point in plan.points:
        point.setup.programs.check(point.setup)


def carry_out(
    plan: Plan, store: Store, say: Callable[[str], None]
) -> tuple[list[tuple[Point, Run]], list[Failure]]:
    """All runs of the plan, old and new. One that fails does not stop the others: an
    experiment of a night is not to end with its first hour."""
    # One run may stand in several places, as that without loss does.
    setups = dict.fromkeys(point.setup for point in plan.points)
    done = {setup: run for setup in setups if (run := store.get(setup)) is not None}
    missing = [point for point in plan.points if point.setup not in done]
    missing = list({point.setup: point for point in missing}.values())
    if done:
        say(f"{plan.name}: {len(done)} of {len(setups)} runs are there already")
    failures = []
    progress = Progress([point.setup.expected_s for point in missing])
    try:
        for point in missing:
            interruption.check()
            progress.begin(f"{plan.name}: {describe(point.setup)}")
            try:
                run = _run(point, progress)
            except ExperimentError as error:
                failures.append(Failure(point, str(error)))
                progress.end(f"FAILED: {str(error).splitlines()[0]}")
                continue
            store.put(point.setup, run)
            done[point.setup] = run
            progress.end(headline(run))
    finally:
        progress.clear()
    records = [(point, done[point.setup]) for point in plan.points if point.setup in done]
    return records, failures


def _run(point: Point, progress: Progress) -> Run:
    for _ in range(_TRIES):
        run = experiment.run(point.setup, tick=progress.tick)
        if not own_drops(run):
            return run
    raise ExperimentError(
        f"the link emulator dropped {own_drops(run)} packets of its own accord in each of "
        f"{_TRIES} tries: this machine is too busy or too slow for it"
    )
