# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo as one page that needs nothing but itself."""

from __future__ import annotations

from html import escape

from ..loads.apps import human_bytes
from . import charts, demodata, html, table

_BOTH = [("off", charts.NAMES["off"]), ("on", charts.NAMES["on"])]
_CEILING = ("ref", charts.NAMES["ref"])


def render(document: dict) -> str:
    """The whole page."""
    downloads, call = demodata.downloads(document), demodata.call(document)
    parts = [_introduction(document), _tiles(downloads, call)]
    parts.append(
        html.section(
            "How fast a download is",
            "Goodput of one QUIC connection, higher is better. "
            "The dashed line is the same download when nothing is lost.",
            [*_BOTH, _CEILING],
            lambda width: charts.goodput_bars(downloads, width),
            _table(table.DOWNLOAD_HEAD, table.download_rows(downloads))
            + '<p class="soft">Mbit/s. “Repaired in time”: of the packets lost on the Wi-Fi hop, '
            "those whose copy arrived before the sender could have helped. “Needless copies”: "
            "of all packets sent to the client.</p>",
        )
    )
    if call is not None:
        parts.append(
            html.section(
                "How long a video frame takes",
                "From the camera to the viewer; further left is better. "
                "A call is smooth when even the slowest frames are quick.",
                [*_BOTH, _CEILING],
                lambda width: charts.delay_distribution(call, width),
                _table(table.CALL_HEAD, table.call_rows(call)),
            )
        )
    benefit = demodata.benefit(document)
    if benefit is not None:
        lines = "".join(f"<p>{escape(line)}</p>" for line in table.benefit_lines(benefit))
        parts.append(
            html.section(
                "What an owner is told",
                "A router cannot know what would be without help, so chance leaves some downloads "
                "alone, and the others are compared with them. Here the truth is known as well.",
                [],
                None,
                lines,
            )
        )
    timeline = document.get("timeline")
    if timeline:
        parts.append(
            html.section(
                f"One download of {human_bytes(timeline['bytes'])}, moment by moment",
                "Without PEMI the sender takes each loss for congestion and halves its speed. "
                "With PEMI the router sends the packet again within milliseconds, and holds the "
                "acknowledgements that would have told of the loss until the hole is filled.",
                [
                    *_BOTH,
                    ("loss", "lost on the Wi-Fi hop (PEMI on)"),
                    ("held", "acknowledgements held"),
                ],
                lambda width: charts.download_timeline(timeline["off"], timeline["on"], width),
                "",
            )
        )
    body = "\n".join([*parts, _footer(document)])
    return html.document("PEMI: QUIC across a lossy Wi-Fi hop", body)


def _lossy(document: dict) -> dict:
    return next(
        part["scenario"]
        for part in document["results"]
        if any(part["scenario"][name] for name in ("loss1", "loss1ge", "outages1"))
    )


def _introduction(document: dict) -> str:
    links = _lossy(document)
    return (
        "<h1>QUIC across a lossy Wi-Fi hop, with PEMI off and on</h1>\n"
        f"<p>A client reaches a server through a router. Its Wi-Fi hop ({links['delay1']:g} ms, "
        f"{links['bw1']:g} Mbit/s) loses {links['loss1']:g} % of the packets in each direction; "
        f"behind the router comes a cellular link ({links['delay2']:g} ms, {links['bw2']:g} "
        "Mbit/s). Everything below was measured on this machine with a real QUIC stack, over "
        "emulated links that lost the same packets with PEMI off and on.</p>"
    )


def _tiles(downloads: list[demodata.Download], call: demodata.Call | None) -> str:
    tiles = []
    # The middle size: neither mostly start-up nor mostly patience.
    if downloads:
        download = downloads[1] if len(downloads) > 1 else downloads[0]
        off, on = download.median(download.off), download.median(download.on)
        if off and on:
            size = human_bytes(download.size)
            tiles.append((f"{on / off:.1f} ×", f"the goodput of a {size} download"))
            if download.lossless:
                share = 100 * on / download.lossless
                tiles.append((f"{share:.0f} %", "of what it gets when nothing is lost"))
        if download.recall is not None:
            tiles.append((f"{100 * download.recall:.0f} %", "of the losses repaired in time"))
    if call is not None:
        slow, quick = (call.percentiles[kind]["p99"] for kind in ("off", "on"))
        if slow and quick:
            words = f"frame delay p99 in a call, instead of {slow:,.0f} ms"
            tiles.append((f"{quick:,.0f} ms", words))
    inner = "".join(
        f'<div class="tile"><b>{escape(figure)}</b><span>{escape(words)}</span></div>'
        for figure, words in tiles
    )
    return f'<div class="tiles">{inner}</div>'


def _table(head: list[str], rows: list[list[str]]) -> str:
    # Turned on its side: three or four columns fit on a phone.
    head, *rows = (list(column) for column in zip(head, *rows, strict=True))
    return html.table(head, rows)


def _footer(document: dict) -> str:
    made = document["made"]
    words = (
        f"Medians of {made['seeds']} seed{'s' if made['seeds'] != 1 else ''}. Made {made['date']} "
        f"on {made['machine']}, PEMI {made['version']}. Figures in full: demo.json beside this "
        "page. Point at a bar or a mark for its value."
    )
    return f"<footer>{escape(words)}</footer>"
