#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Repeats published experiments, with PEMI and the other assists beside them."""

from __future__ import annotations

import argparse
import sys
from html import escape
from pathlib import Path

from testbed import program
from testbed.draw import html
from testbed.measure import result
from testbed.study import carry, plan, report
from testbed.study.store import Store

FOLDER = Path(__file__).parent / "experiments"


def main() -> int:
    options = _options()
    try:
        chosen = options.name or plan.names(FOLDER)
        plans = [plan.read(FOLDER, name, options.size, options.seeds) for name in chosen]
    except plan.PlanError as error:
        print(f"study.py: error: {error}", file=sys.stderr)
        return 2
    if options.list:
        for one in plans:
            print(f"{one.name:20} {len(one.points):4} runs  {one.title}")
        return 0
    more = ", and the same command goes on with the runs that are missing"
    if options.part:
        return program.exit_code("study.py", lambda: _parts(plans, options.out, options.part), more)
    return program.exit_code("study.py", lambda: _study(plans, options.out), more)


def _study(plans: list[plan.Plan], out: Path) -> int:
    for one in plans:
        carry.check(one)
    sound = [_experiment(one, out) for one in plans]
    return 0 if all(sound) else 1


def _parts(plans: list[plan.Plan], out: Path, part: tuple[int, int]) -> int:
    """The runs alone, for whoever puts them together: reports are of all parts."""
    parts = [plan.part(one, *part) for one in plans]
    for one in parts:
        carry.check(one)
    failures = [failure for one in parts for failure in _runs(one, out)[1]]
    # Whether a client gave up without help as well may be known in another part.
    failed = [failure for failure in failures if not failure.gave_up]
    _say(failed, "FAILED")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="study.py", description=__doc__)
    parser.add_argument("name", nargs="*", help="experiments; none: all of them")
    parser.add_argument("--size", choices=plan.SIZES, default="full", help="how many runs")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="repeats of each run, instead of the size's own"
    )
    parser.add_argument(
        "--part",
        type=_part,
        metavar="K/N",
        help="only the K-th of N parts of the runs, without a report; then once more without this",
    )
    parser.add_argument("--list", action="store_true", help="say what there is and end")
    parser.add_argument(
        "--out", type=Path, default=Path("out/experiments"), help="where runs and reports go"
    )
    return parser.parse_args()


def _part(text: str) -> tuple[int, int]:
    number, of = (int(word) for word in text.split("/"))
    if not 1 <= number <= of:
        raise ValueError
    return number, of


def _runs(one: plan.Plan, out: Path) -> tuple[list, list[carry.Failure]]:
    store = Store(out / one.name / "runs")
    return carry.carry_out(one, store, lambda line: print(line, file=sys.stderr))


def _experiment(one: plan.Plan, out: Path) -> bool:
    records, failures = _runs(one, out)
    folder = out / one.name / one.size
    about = program.made()
    result.write_json(folder / "result.json", report.document(one, records, failures, about))
    result.write_text(folder / "report.html", report.page(one, records, failures, about))
    _index(out)
    print(f"\n{one.title}\n{report.text(one, records)}")
    gave_up, failed = carry.judged(failures, records)
    _say(gave_up, "gave up, also without help")
    _say(failed, "FAILED")
    print(f"\nThe page: {folder / 'report.html'}   the runs: {folder / 'result.json'}")
    return not failed


def _say(failures: list[carry.Failure], what: str) -> None:
    for failure in failures:
        print(f"{what}: {failure.message}", file=sys.stderr)


def _index(out: Path) -> None:
    """The summary page: whatever reports there are."""
    items = []
    for page in sorted(out.glob("*/*/report.html")):
        size, name = page.parent.name, page.parent.parent.name
        link = escape(str(page.relative_to(out)), quote=True)
        title = plan.read(FOLDER, name, size).title if name in plan.names(FOLDER) else name
        items.append(
            (name, plan.SIZES.index(size), f'<a href="{link}">{escape(title)}</a>, {size}')
        )
    body = "".join(f"<li>{item}</li>" for _, _, item in sorted(items))
    result.write_text(
        out / "index.html",
        html.document("Experiments", f"<h1>Experiments</h1>\n<ul>{body}</ul>"),
    )


if __name__ == "__main__":
    sys.exit(main())
