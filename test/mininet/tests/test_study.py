# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments as files: what they run, what is kept, and what the report says."""

import dataclasses
import html.parser
import json
import re
from pathlib import Path
from typing import ClassVar

import pytest
from testbed import experiment
from testbed.setups import Setup
from testbed.study import carry, figures, plan, plots, report
from testbed.study.store import Store
from testbed.world.process import ExperimentError
from testbed.world.programs import Programs

TEXT = """
title = "A title"
question = "Why?"

[links]
preset = "train"

[[cells]]
app = "goodput"
loss1 = [0, 1]
bytes = ["1MB", "5MB"]
assist = ["off", "pemi", "lossless"]

[full]
seeds = 2

[quick]
bytes = "1MB"

[[tables]]
title = "Goodput"
metric = "goodput_mbps"
unit = "Mbit/s"
rows = ["loss1", "bytes"]
columns = ["off", "pemi", "lossless"]
plot = "bars"
published = [{ loss1 = 1, bytes = "1MB", off = 4, on = 8 }]

[[tables.checks]]
column = "pemi"
of = "lossless"
at_least = 0.9
where = { loss1 = 1 }
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "one.toml").write_text(TEXT)
    return tmp_path


def goodput(setup):
    """More with help, most where nothing is lost."""
    if setup.scenario.loss1 == 0:
        return 9.0
    return {"off": 3.0, "pemi": 8.5}[setup.assist.name] + setup.seed / 10


def run_of(setup, own_drops=0, lateness_us=300, stood_still_s=0.0):
    direction = {"own_drops": own_drops, "lateness_us": {"p99": lateness_us}}
    return {
        "app": setup.app.name,
        "assist": setup.assist.name,
        "metrics": {"goodput_mbps": goodput(setup), "delays_ms": [1.0, None, 4.0]},
        "inference": None,
        "links": {"wifi": {"down": direction, "up": direction}},
        "stood_still_s": stood_still_s,
    }


def test_points_are_the_product_of_the_axes_and_lines_of_run_py(folder):
    full = plan.read(folder, "one", "full")
    # 2 losses x 2 sizes x 3 assists x 2 seeds; without loss `lossless` is a name for `off`.
    assert len(full.points) == 24
    point = next(p for p in full.points if p.values["assist"] == "pemi" and p.values["loss1"] == 1)
    assert point.setup.scenario.loss1 == 1
    assert point.setup.scenario.bw2 == 10
    line = "--preset train --loss1 1 --pemi --loss-seed 1 goodput --bytes 1MB"
    assert " ".join(point.command) == line
    lossless = [p for p in full.points if p.values["assist"] == "lossless"]
    assert {p.setup.scenario.loss1 for p in lossless} == {0}
    assert {p.values["loss1"] for p in lossless} == {0, 1}


def test_a_smaller_size_leaves_out_what_it_names(folder):
    quick = plan.read(folder, "one", "quick")
    assert {point.values["bytes"] for point in quick.points} == {"1MB"}
    assert len(quick.points) == 6


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (TEXT.replace("bytes = [", "loss2 = 200\nbytes = ["), ["cells[0]", "--loss2"]),
        (TEXT.replace("loss1 = [0, 1]", "los1 = 1"), ["cells[0]", "--los1"]),
        (TEXT.replace('app = "goodput"\n', ""), ["cells[0]", "`app` is missing"]),
        (TEXT.replace('unit = "Mbit/s"\n', ""), ["tables[0]", "unit"]),
        (TEXT.replace("plot =", "plott ="), ["tables[0]", "plott"]),
        (TEXT.replace("[quick]", "[qick]"), ["qick"]),
        ("cells = [", ["one.toml"]),
        ("", ["nothing to run"]),
    ],
)
def test_a_broken_file_is_named_with_its_place(folder, broken, words):
    (folder / "one.toml").write_text(broken)
    with pytest.raises(plan.PlanError) as error:
        plan.read(folder, "one", "full")
    for word in ["one.toml", *words]:
        assert word in str(error.value)


def test_every_experiment_of_this_repository_can_be_read():
    for name in plan.names(EXPERIMENTS):
        for size in plan.SIZES:
            found = plan.read(EXPERIMENTS, name, size)
            assert found.question, name
            # Else a table of the report stays empty.
            for table in found.tables if size == "full" else ():
                named = [p for p in found.points if figures.matches(p.values, table.where)]
                assert {p.values["assist"] for p in named} >= set(table.columns), (
                    name,
                    table.title,
                )


def test_an_interrupted_experiment_goes_on_where_it_was(folder, monkeypatch):
    one = plan.read(folder, "one", "quick")
    store, ran = Store(folder / "runs"), []

    def stopped_after_two(setup, **_):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(setup)
        return run_of(setup)

    ready(monkeypatch, stopped_after_two)
    with pytest.raises(KeyboardInterrupt):
        carry.carry_out(one, store, print)
    monkeypatch.setattr(experiment, "run", lambda setup, **_: ran.append(setup) or run_of(setup))
    records, failures = carry.carry_out(one, store, print)
    assert (len(records), failures) == (6, [])
    # One run serves `off` and `lossless` where nothing is lost.
    assert len(ran) == len(set(ran))


def test_a_new_build_of_the_daemon_is_measured_anew(folder, monkeypatch, tmp_path):
    built = tmp_path / "pemi"
    built.write_bytes(b"one")
    points = plan.read(folder, "one", "quick").points
    setups = [
        dataclasses.replace(point.setup, programs=Programs(pemi=built, testbed=tmp_path))
        for point in points
    ]
    for program in ("goodput", "linkem"):
        (tmp_path / program).write_bytes(b"")
    store = Store(folder / "runs")
    for setup in setups:
        store.put(setup, run_of(setup))
    built.write_bytes(b"another")
    assert {setup.assist.name for setup in setups if store.get(setup) is None} == {"pemi"}


def test_one_failure_does_not_end_the_others_and_is_told(folder, monkeypatch):
    one = plan.read(folder, "one", "quick")

    def run(setup, **_):
        if setup.assist.name == "pemi":
            raise ExperimentError("the client fell over\nbadly")
        return run_of(setup)

    ready(monkeypatch, run)
    records, failures = carry.carry_out(one, Store(folder / "runs"), print)
    assert {point.values["assist"] for point, _ in records} == {"off", "lossless"}
    assert [failure.message for failure in failures] == ["the client fell over\nbadly"] * 2
    assert "the client fell over" in report.page(one, records, failures, MADE)


def test_a_run_on_an_overloaded_machine_is_done_again(folder, monkeypatch):
    one = plan.read(folder, "one", "quick")
    drops = iter([3, 0])
    ready(monkeypatch, lambda setup, **_: run_of(setup, next(drops, 0)))
    records, failures = carry.carry_out(one, Store(folder / "runs"), print)
    assert not failures
    assert all(run["links"]["wifi"]["up"]["own_drops"] == 0 for _, run in records)
    (folder / "other").mkdir()
    monkeypatch.setattr(experiment, "run", lambda setup, **_: run_of(setup, 3))
    records, failures = carry.carry_out(one, Store(folder / "other"), print)
    assert not records
    assert "too busy" in failures[0].message


def test_a_run_with_late_links_is_done_again_and_the_best_one_kept(folder, monkeypatch):
    one = plan.read(folder, "one", "quick")
    late = iter([9000, 300, *[8000, 5000, 7000] * 9])
    ready(monkeypatch, lambda setup, **_: run_of(setup, lateness_us=next(late)))
    records, failures = carry.carry_out(one, Store(folder / "runs"), print)
    assert not failures
    kept = {run["links"]["wifi"]["up"]["lateness_us"]["p99"] for _, run in records}
    assert kept == {300, 5000}
    # The one that was good serves three points.
    assert "3 of 6 runs the links were" in report.page(one, records, failures, MADE)
    # The next time the machine may be quieter; those that were good stay.
    monkeypatch.setattr(experiment, "run", lambda setup, **_: run_of(setup))
    records, _ = carry.carry_out(one, Store(folder / "runs"), print)
    assert not any(carry.disturbed(run) for _, run in records)
    assert "late at the" not in report.text(one, records)


def test_a_run_in_which_the_machine_was_halted_is_done_again(folder, monkeypatch):
    one = plan.read(folder, "one", "quick")
    halted = iter([45.8])
    ready(monkeypatch, lambda setup, **_: run_of(setup, stood_still_s=next(halted, 0.1)))
    records, _ = carry.carry_out(one, Store(folder / "runs"), print)
    assert {run["stood_still_s"] for _, run in records} == {0.1}


def test_tables_are_medians_beside_what_was_published(folder):
    one = plan.read(folder, "one", "full")
    records = [(point, run_of(point.setup)) for point in one.points]
    (table,) = one.tables
    found = figures.rows(table, records)
    row = next(r for r in found if r.values == {"loss1": 1, "bytes": "1MB"})
    assert row.columns["off"].median == pytest.approx(3.15)
    assert row.columns["off"].values == (3.1, 3.2)
    line = dict(zip(report.head(table), report.cells(table, [row])[0], strict=True))
    assert line["pemi / off"] == f"{8.65 / 3.15:.2f}"
    assert line["pemi / lossless"] == f"{8.65 / 9:.2f}"
    assert line["published"] == "4 → 8 (2.00)"


def test_rows_are_in_the_order_of_their_numbers(folder):
    text = TEXT.replace("loss1 = [0, 1]", "loss1 = [2, 0.5, 10]")
    (folder / "one.toml").write_text(text.replace('["1MB", "5MB"]', '["5MB", "10MB"]'))
    one = plan.read(folder, "one", "full")
    records = [
        (point, run_of(point.setup)) for point in one.points if point.setup.assist.name == "off"
    ]
    found = [tuple(row.values.values()) for row in figures.rows(one.tables[0], records)]
    assert found == [(loss, size) for loss in (0.5, 2, 10) for size in ("5MB", "10MB")]


def test_bars_are_held_against_every_row_they_are_meant_for(folder):
    one = plan.read(folder, "one", "full")
    records = [(point, run_of(point.setup)) for point in one.points]
    (table,) = one.tables
    found = figures.rows(table, records)
    (check,) = table.checks
    verdict = figures.judge(check, found)
    assert (verdict.rows, verdict.missed) == (2, 0)
    assert verdict.worst == pytest.approx(8.65 / 9)
    missed = figures.judge(dataclasses.replace(check, at_least=0.97), found)
    assert missed.missed == 2
    above = dataclasses.replace(check, at_least=None, at_most=0.9)
    assert figures.judge(above, found).missed == 2


def test_the_page_is_sound_and_says_what_was_missed(folder):
    text = TEXT.replace("at_least = 0.9", "at_least = 0.99")
    (folder / "one.toml").write_text(text)
    one = plan.read(folder, "one", "full")
    records = [(point, run_of(point.setup)) for point in one.points]
    page = report.page(one, records, [], MADE)
    checker = Balance()
    checker.feed(page)
    assert checker.open == []
    assert "MISSED in 2 of 2 rows" in page
    document = json.loads(json.dumps(report.document(one, records, [], MADE)))
    assert document["tables"][0]["checks"][0]["missed"] == 2
    assert len(document["runs"]) == len(records)


@pytest.mark.parametrize("plot", ["bars", "lines", "cdf"])
def test_every_kind_of_drawing_shows_every_series(folder, plot):
    one = plan.read(folder, "one", "full")
    records = [(point, run_of(point.setup)) for point in one.points]
    (table,) = one.tables
    table = dataclasses.replace(
        table, plot=plot, x="loss1", samples="delays_ms", rows=("bytes", "loss1")
    )
    found = figures.rows(table, records)
    drawn = plots.plots(table, found, records)
    for drawing in drawn:
        svg = drawing.draw(700).render(standalone=True)
        for css, _ in drawing.keys:
            assert f'{css}"' in svg


def test_a_distribution_may_begin_where_it_says_something(folder):
    one = plan.read(folder, "one", "quick")
    waits = [0.0] * 90 + [20.0] * 10
    records = [
        (point, {**run_of(point.setup), "metrics": {"goodput_mbps": 1, "waits": waits}})
        for point in one.points
    ]
    (table,) = one.tables

    def levels(begin):
        shown = dataclasses.replace(table, plot="cdf", samples="waits", from_percent=begin)
        (drawing,) = plots.plots(shown, figures.rows(shown, records), records)
        svg = drawing.draw(700).render(standalone=True)
        steps = re.search(r'class="line [^"]*" d="M([^"]+)"', svg)[1].split("L")
        return [float(step.split()[1]) for step in steps], svg

    whole, _ = levels(0)
    end, svg = levels(80)
    assert len(whole) == 100
    assert len(end) == 20
    # The top stays the top; what is left of it fills the drawing.
    assert min(end) == min(whole)
    assert max(whole) * 0.9 < max(end) <= max(whole)
    assert ">85</text>" in svg


def test_no_two_columns_look_alike():
    for name in plan.names(EXPERIMENTS):
        for table in plan.read(EXPERIMENTS, name, "full").tables:
            css = plots.colours(table.columns)
            looks = [{"off": "c1", "pemi": "c0"}.get(label, css[label]) for label in css]
            assert len(set(looks)) == len(looks), (name, table.title)


def test_ratios_may_be_left_out(folder):
    one = plan.read(folder, "one", "full")
    records = [(point, run_of(point.setup)) for point in one.points]
    table = dataclasses.replace(one.tables[0], ratios=False)
    found = figures.rows(table, records)
    head = ["loss1", "bytes", "off", "pemi", "lossless", "published"]
    assert report.head(table) == head
    assert all(len(line) == len(head) for line in report.cells(table, found))


def test_the_bars_of_a_call_name_what_they_compare():
    one = plan.read(EXPERIMENTS, "sidekick-media", "quick")
    assists = ["off", "sidekick-8p", "sidekick-4p", "sidekick-2p", "sidekick-adaptive"]
    assert {point.values["assist"] for point in one.points} == set(assists)

    def missed(p99, mean, rate):
        """Of these figures, in the order of the assists."""

        def run(point):
            at = assists.index(point.values["assist"])
            waits = {"p99": p99[at], "mean": mean[at]}
            return {"metrics": {"dejitter_ms": waits, "overhead": {"quack_bytes_per_s": rate[at]}}}

        records = [(point, run(point)) for point in one.points]
        judged = [verdict for _, _, found in report.tables(one, records) for verdict in found]
        return [verdict.words for verdict in judged if verdict.missed]

    p99, mean, rate = [52.5, 52.5, 52.6, 22, 0], [4, 3, 2, 0.7, 0.01], [None, 450, 900, 1800, 800]
    assert missed(p99, mean, rate) == []
    assert missed([46, 46, 46, 22, 0], mean, rate) == ["off ≥ 46.8"]
    assert missed([63, *p99[1:]], mean, rate) == ["off ≤ 62.7"]
    assert missed([*p99[:3], 29, 0], mean, rate) == ["sidekick-2p ≤ 28"]
    assert missed([52.5, 50, 53, 22, 0], mean, rate) == ["sidekick-4p ≤ 1.03 × sidekick-8p"]
    assert missed([*p99[:4], 9], mean, rate) == ["sidekick-adaptive ≤ 8"]
    assert missed(p99, [4, 2, 2, 0.7, 0], rate) == ["sidekick-4p ≤ 0.95 × sidekick-8p"]
    assert missed(p99, mean, [None, 450, 900, 1800, 1801]) == [
        "sidekick-adaptive ≤ 1 × sidekick-2p"
    ]


def test_runs_made_before_an_option_came_are_found(folder, monkeypatch):
    """What they were made without is as if it was not asked for."""
    monkeypatch.setattr(Setup, "needed", lambda *_: [])
    (setup, *_) = (point.setup for point in plan.read(folder, "one", "full").points)
    store = Store(folder / "runs")
    with monkeypatch.context() as before:
        links = setup.scenario.to_json()
        later = ("trace1", "wifi1", "outages1")
        older = {name: links[name] for name in links if name not in later}
        before.setattr(type(setup.scenario), "to_json", lambda _: older)
        store.put(setup, run_of(setup))
    assert store.get(setup) is not None
    radio = dataclasses.replace(setup.scenario, loss1=0, wifi1="poor")
    assert store.get(dataclasses.replace(setup, scenario=radio)) is None


@pytest.mark.parametrize("name", ["wifi-delay", "wifi-rate"])
def test_the_bars_of_real_wifi_hold_each_trace_and_stack(name):
    one = plan.read(EXPERIMENTS, name, "full", seeds=1)
    axes = ("app", "trace1", "stack", "loss1")
    rows = {tuple(point.values[axis] for axis in axes) for point in one.points}

    def missed(part):
        """How many rows miss their bar where PEMI has this part of the usual goodput."""

        def run(point):
            got = part if point.values["assist"] == "pemi" else 1
            metrics = {"goodput_mbps": 8 * got, "frame_delay_ms": {"p99": 900 / got}}
            metrics["delays_ms"] = [20, 30, 900 / got]
            return {"metrics": metrics, "inference": {"unneeded_percent": 0.0}, "links": None}

        records = [(point, run(point)) for point in one.points]
        found = report.tables(one, records)
        assert len(found) == len(one.tables)
        return sum(verdict.missed for _, _, verdicts in found for verdict in verdicts)

    assert missed(0.985) == 0
    assert missed(0.97) == len(rows)


def test_a_point_of_a_call_is_a_line_of_run_py():
    for point in plan.read(EXPERIMENTS, "sidekick-media", "quick").points:
        interval = point.values["assist"].removeprefix("sidekick-")
        flag = "--off" if interval == "off" else f"--sidekick {interval}"
        shape = "media --seconds 60 --bytes 240 --interval-ms 20"
        assert " ".join(point.command).endswith(f"{flag} --loss-seed 1 {shape}")


class Balance(html.parser.HTMLParser):
    VOID: ClassVar = {"meta", "br", "rect", "line", "path"}

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


MADE = {"date": "2026-01-01", "machine": "<2 cores>", "version": "0"}
EXPERIMENTS = Path(__file__).parents[1] / "experiments"


def ready(monkeypatch, run):
    """Runs without root and programs."""
    monkeypatch.setattr(Setup, "needed", lambda *_: [])
    monkeypatch.setattr(experiment, "run", run)


@pytest.mark.parametrize("of", [1, 3, 50])
def test_parts_have_every_run_once(folder, of):
    whole = plan.read(folder, "one", "full")
    parts = [plan.part(whole, number, of) for number in range(1, of + 1)]
    setups = [{point.setup for point in one.points} for one in parts]
    assert set().union(*setups) == {point.setup for point in whole.points}
    assert sum(map(len, setups)) == len({point.setup for point in whole.points})
    assert max(map(len, setups)) - min(map(len, setups)) <= 1


def test_what_parts_have_run_is_not_run_again(folder, monkeypatch):
    whole = plan.read(folder, "one", "quick")
    ready(monkeypatch, lambda setup, **_: run_of(setup))
    for number in (1, 2):
        store = Store(folder / "runs")
        carry.carry_out(plan.part(whole, number, 2), store, lambda _: None)
    monkeypatch.setattr(experiment, "run", None)
    records, failures = carry.carry_out(whole, Store(folder / "runs"), lambda _: None)
    assert len(records) == len(whole.points) and not failures
