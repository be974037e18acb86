# SPDX-License-Identifier: GPL-2.0-or-later
import html.parser
import json
import xml.etree.ElementTree as ElementTree

import pytest
from testbed.draw import charts, demodata, page, table
from testbed.draw.svg import logarithmic, nice_ticks, round_up
from testbed.world.scenario import Scenario

LOSSY = Scenario.from_preset("train")


def download(assist, goodput, seed):
    return {
        "app": "goodput",
        "assist": assist,
        "seed": seed,
        "bytes": 5_000_000,
        "metrics": {"goodput_mbps": goodput},
        "inference": {"recall": 0.9, "unneeded_percent": 6.0},
    }


def call(assist, delays, expected):
    return {
        "app": "rtc",
        "assist": assist,
        "seed": 1,
        "bytes": None,
        "metrics": {
            "frame_delay_ms": {"p50": delays[0], "p90": delays[-1], "p99": delays[-1]},
            "delays_ms": [*delays, *[None] * (expected - len(delays))],
            "frames": expected,
        },
        "inference": None,
    }


def downloads(assist, rates, benefit=None):
    router = benefit and {"benefit": benefit}
    return {
        "app": "downloads",
        "assist": assist,
        "seed": 1,
        "bytes": 1_000_000,
        "metrics": {"goodputs_mbps": rates},
        "router": router or {},
        "inference": None,
    }


@pytest.fixture
def document():
    lossy = [download("off", 2.0 + seed, seed) for seed in range(3)]
    lossy += [download("pemi", 8.0 + seed / 10, seed) for seed in range(3)]
    lossy += [call("off", [40.0, 900.0, 4000.0], 5), call("pemi", [37.0, 38.0, 41.0], 3)]
    lossless = [download("off", 9.1, 1), call("off", [37.0, 37.0, 37.5], 3)]
    line = {
        "end_s": 4.0,
        "delivered": [[0, 0], [4.0, 5_100_000]],
        "losses": [1.0],
        "repairs": [1.004],
        "held": [[1.003, 1.006]],
    }
    return {
        "made": {"date": "2026-01-01", "machine": "<2 cores>", "version": "0", "seeds": 3},
        "results": [
            {"scenario": LOSSY.to_json(), "runs": lossy},
            {"scenario": LOSSY.lossless().to_json(), "runs": lossless},
        ],
        "timeline": {"bytes": 5_000_000, "seed": 1, "off": line, "on": line},
    }


def test_medians_and_ratios(document):
    (row,) = table.download_rows(demodata.downloads(document))
    assert row == ["5 MB", "3.00", "8.10", "9.10", "2.70 x", "0.89", "90 %", "6.0 %"]


def test_frames_that_never_came_are_counted(document):
    rows = table.call_rows(demodata.call(document))
    assert rows[0][-1] == "2"
    assert rows[1] == ["on", "37 ms", "41 ms", "41 ms", "0"]


def test_table_columns_line_up():
    lines = table.text(["a", "long"], [["first", "1"], ["b", "22"]]).splitlines()
    assert len({len(line) for line in lines}) == 1


def test_drawings_are_well_formed(document):
    call_ = demodata.call(document)
    line = document["timeline"]["on"]
    for width in (336, 760):
        for drawing in (
            charts.goodput_bars(demodata.downloads(document), width, keys=True),
            charts.delay_distribution(call_, width),
            charts.download_timeline(line, line, width),
        ):
            root = ElementTree.fromstring(drawing.render(standalone=True))
            assert float(root.get("width")) == width


def test_page_needs_nothing_but_itself(document):
    text = page.render(document)

    found = []

    class Links(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.extend(value for name, value in attributes if name in ("src", "href"))

    Links().feed(text)
    assert found == []
    assert "url(" not in text and "@import" not in text
    assert "&lt;2 cores&gt;" in text


def test_page_without_a_call_or_a_time_line(document):
    for part in document["results"]:
        part["runs"] = [run for run in part["runs"] if run["app"] == "goodput"]
    del document["timeline"]
    assert "video frame" not in page.render(document)


def test_page_can_be_made_from_the_file(document):
    assert page.render(json.loads(json.dumps(document))) == page.render(document)


def test_scales():
    assert nice_ticks(9.2, 5) == [0, 2, 4, 6, 8, 10]
    assert nice_ticks(10, 5)[-1] == 10
    assert round_up(4200) == 5000
    assert round_up(0.11) == pytest.approx(0.2)
    assert logarithmic(10, 1000, 0, 100)(100) == pytest.approx(50)


def test_what_the_router_says_stands_beside_the_truth(document):
    assert demodata.benefit(document) is None
    assert "What an owner is told" not in page.render(document)
    told = {"sentence": "With help, 2 times.", "verdict": "helps", "interval": [1.5, 2.2]}
    runs = document["results"][0]["runs"]
    runs += [downloads("pemi", [8.0, 4.0], told), downloads("pemi", [8.0, 8.0])]
    runs.append(downloads("off", [4.0, 4.0]))
    benefit = demodata.benefit(document)
    assert (benefit["truth"], benefit["held"], benefit["count"]) == (2.0, True, 2)
    text = page.render(document)
    assert "With help, 2 times." in text and "it is in the interval" in text
    told["interval"] = None
    assert "it is NOT in the interval" in "".join(table.benefit_lines(demodata.benefit(document)))
