# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of packets: what linkem's logs say of each of them, hop by hop."""

import csv

from testbed.draw import packet_chart
from testbed.measure import captures
from testbed.measure.captures import Sighting
from testbed.measure.packets import as_csv, promptness, totals, trace
from testbed.measure.scoring import Packet as Crossing

WAN_US, WIFI_US = 25_000, 1_000


def crossing(us, digest, fate="ok", took=0.0, length=1200):
    return Crossing(us, length, digest, fate, us + took if fate == "ok" and took else None)


def wan(us, digest, fate="ok"):
    return crossing(us, digest, fate, WAN_US)


def wifi(us, digest, fate="ok"):
    return crossing(us, digest, fate, WIFI_US)


def run():
    """Four packets down: one well, one lost and repaired, one lost for good, one dropped
    before the router. The second copy of the lost one was not needed. One reply, held."""
    return {
        ("down", "wan"): [
            wan(0, "a"),
            wan(1_000, "b"),
            wan(2_000, "c"),
            wan(3_000, "d", "queue"),
        ],
        ("down", "wifi"): [
            wifi(25_100, "a"),
            wifi(26_100, "b", "lost"),
            wifi(27_100, "c", "lost"),
            wifi(29_000, "b"),
            wifi(29_500, "b"),
            wifi(29_600, "c", "lost"),
        ],
        ("up", "wifi"): [wifi(26_150, "x"), wifi(28_000, "y"), wifi(31_000, "z")],
        ("up", "wan"): [wan(27_200, "x"), wan(32_900, "z"), wan(33_000, "y")],
    }


def test_every_packet_has_its_fate_times_copies_and_reply():
    packets = {(p.direction, p.number): p for p in trace(run())}
    fates = [packets["down", number].fate for number in range(4)]
    assert fates == ["ok", "repaired", "wifi lost", "wan queue"]
    b = packets["down", 1]
    assert b.copies == [(29_000, True), (29_500, False)]
    assert b.at["client"] == 30_000
    assert packets["down", 2].copies == [(29_600, True)]
    # The reply at 28 ms was on its way before the copy had come.
    assert [packets["down", number].reply for number in range(4)] == [0, 2, None, None]
    assert packets["up", 0].answers == 1
    assert packets["up", 1].in_router_ms == 4.0


def test_a_packet_sent_twice_by_its_sender_is_two_packets():
    seen = run()
    seen["down", "wan"] = [wan(0, "a"), wan(500, "a")]
    seen["down", "wifi"] = [wifi(25_100, "a", "lost"), wifi(25_600, "a"), wifi(26_000, "a")]
    first, second = (p for p in trace(seen) if p.direction == "down")
    assert (first.fate, first.copies) == ("wifi lost", [])
    assert (second.fate, second.copies) == ("ok", [(26_000, False)])


def test_what_is_still_under_way_at_the_end_was_not_lost():
    seen = run()
    seen["down", "wan"] = [wan(0, "a"), wan(1, "b"), crossing(2, "c")]
    seen["down", "wifi"] = [crossing(25_100, "a")]
    assert [p.fate for p in trace(seen) if p.direction == "down"] == [
        "on the wifi",
        "in the router",
        "on the wan",
    ]


def test_the_table_and_its_totals_agree():
    packets = trace(run())
    rows = list(csv.DictReader(as_csv(packets).splitlines()))
    assert len(rows) == len(packets)
    assert rows[0]["server_ms"] == "0.0000"
    counts = totals(packets)["down"]
    assert counts["packets"] == sum(row["direction"] == "down" for row in rows) == 4
    assert counts["copies"] == sum(int(row["copies"]) for row in rows) == 3
    assert counts["copies needed"] == 2


def captured(seen):
    """What captures at both ends of every link would have shown."""
    found = {}
    points = {
        ("down", "wan"): ("server", "router_wan"),
        ("down", "wifi"): ("router_wifi", "client"),
    }
    points |= {("up", "wifi"): ("client", "router_wifi"), ("up", "wan"): ("router_wan", "server")}
    for (direction, link), (near, far) in points.items():
        crossings = seen[direction, link]
        found[direction, near] = [Sighting(c.us, c.length, c.digest) for c in crossings]
        found[direction, far] = [
            Sighting(c.out_us, c.length, c.digest) for c in crossings if c.out_us is not None
        ]
    return found


def test_captures_tell_the_same_as_the_logs():
    seen = run()
    other = captures.crossings(captured(seen))
    assert captures.disagreements(seen, other) == []
    # What the queue dropped is lost to those who only see the ends.
    assert [p.fate.replace("queue", "lost") for p in trace(seen)] == [p.fate for p in trace(other)]


def test_captures_that_miss_a_packet_are_told():
    seen = run()
    points = captured(seen)
    points["down", "client"].pop()
    (words,) = captures.disagreements(seen, captures.crossings(points))
    assert "3 packets came out of the wifi by linkem's log, 2 by the captures" in words


def test_the_time_line_shows_losses_copies_and_holding():
    svg = packet_chart.draw(trace(run()), [(28_900, 33_000)], 0, None).render(standalone=True)
    for words in ("down 1, 1200 bytes: repaired", "copy of 1, needed", "copy of 1, not needed"):
        assert words in svg
    assert "replies held for 4.1 ms" in svg
    # Nothing of it outside the window that was asked for.
    later = packet_chart.draw(trace(run()), [], 1.0, 2.0).render(standalone=True)
    assert "<title>" not in later


def test_how_prompt_a_client_is():
    client = promptness(trace(run()))
    # After 50 µs that to the first packet, after a millisecond that to the copy of the second.
    assert (client.replies, client.per_reply) == (2, 1.0)
    assert (client.p50_us, client.p99_us) == (1_000, 1_000)
    assert promptness([]) is None
