"""The demo as one page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from . import charts, demodata, table
from .apps import human_bytes
from .svg import STYLE, Drawing

# Text in a scaled-down drawing would be too small to read on a phone, so there is a
# drawing for each.
_WIDE, _NARROW = 760, 336

_CSS = """
  :root { color-scheme: light dark; --page: #fff; --card: #f7f8fa; --text: #1d2330;
    --soft: #5f6878; --rule: #e2e5ea; }
  @media (prefers-color-scheme: dark) { :root { --page: #14181f; --card: #1b212b;
    --text: #e8ebf1; --soft: #9aa4b5; --rule: #2f3644; } }
  * { box-sizing: border-box; }
  body { margin: 0; background: var(--page); color: var(--text);
    font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
  main { max-width: 828px; margin: 0 auto; padding: 28px 12px 56px; }
  h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 8px; }
  h2 { font-size: 1.1rem; margin: 0 0 4px; }
  p { margin: 0 0 12px; } .soft { color: var(--soft); font-size: .9rem; }
  .tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr));
    gap: 10px; margin: 20px 0; }
  .tile, section { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; }
  .tile { padding: 12px 14px; } .tile b { display: block; font-size: 1.5rem; line-height: 1.2; }
  .tile span { color: var(--soft); font-size: .85rem; }
  section { padding: 16px 0 10px; margin: 16px 0; overflow: hidden; }
  section > * { margin-left: 14px; margin-right: 14px; }
  section > svg { display: block; max-width: 100%; height: auto; margin: 6px auto; }
  svg.narrow { display: none; }
  @media (max-width: 799px) { svg.wide { display: none !important; }
    svg.narrow { display: block !important; } section > .soft { margin-bottom: 6px; } }
  .legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: .88rem; padding: 0;
    list-style: none; margin-top: 6px; margin-bottom: 0; }
  .legend i { display: inline-block; width: 14px; height: 10px; border-radius: 2px;
    margin-right: 6px; }
  .legend .off { background: var(--off); } .legend .on { background: var(--on); }
  .legend .loss { background: var(--loss); } .legend .held { background: var(--held); }
  .legend .ref { height: 0; border-top: 2px dashed var(--ref); border-radius: 0;
    vertical-align: middle; }
  .scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%;
    font-variant-numeric: tabular-nums; font-size: .9rem; margin-bottom: 8px; }
  th, td { text-align: right; padding: 6px 8px; border-bottom: 1px solid var(--rule);
    white-space: nowrap; }
  th { font-weight: 600; color: var(--soft); } th:first-child, td:first-child {
    text-align: left; padding-left: 0; }
  @media (max-width: 799px) { table { font-size: .82rem; } th, td { padding: 6px 4px; } }
  footer { color: var(--soft); font-size: .85rem; margin-top: 20px; }
"""

_BOTH = [("off", charts.NAMES["off"]), ("on", charts.NAMES["on"])]
_CEILING = ("ref", charts.NAMES["ref"])


def render(document: dict) -> str:
    """The whole page."""
    downloads, call = demodata.downloads(document), demodata.call(document)
    parts = [_introduction(document), _tiles(downloads, call)]
    parts.append(
        _section(
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
            _section(
                "How long a video frame takes",
                "From the camera to the viewer; further left is better. "
                "A call is smooth when even the slowest frames are quick.",
                [*_BOTH, _CEILING],
                lambda width: charts.delay_distribution(call, width),
                _table(table.CALL_HEAD, table.call_rows(call)),
            )
        )
    timeline = document.get("timeline")
    if timeline:
        parts.append(
            _section(
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
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>PEMI: QUIC across a lossy Wi-Fi hop</title>\n<style>{STYLE}{_CSS}</style>\n"
        f"<main>\n{body}\n{_footer(document)}\n</main>\n</html>\n"
    )


def _lossy(document: dict) -> dict:
    return next(
        part["scenario"]
        for part in document["results"]
        if part["scenario"]["loss1"] or part["scenario"]["loss1ge"]
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


def _section(
    title: str,
    words: str,
    legend: list[tuple[str, str]],
    draw: Callable[[float], Drawing],
    after: str,
) -> str:
    keys = "".join(f'<li><i class="{css}"></i>{escape(name)}</li>' for css, name in legend)
    return (
        f"<section><h2>{escape(title)}</h2>"
        f'<p class="soft">{escape(words)}</p><ul class="legend">{keys}</ul>\n'
        f"{draw(_WIDE).render(css='wide')}\n{draw(_NARROW).render(css='narrow')}\n{after}</section>"
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    # Turned on its side: three or four columns fit on a phone.
    head, *rows = (list(column) for column in zip(head, *rows, strict=True))
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<div class="scroll"><table><tr>{top}</tr>{body}</table></div>'


def _footer(document: dict) -> str:
    made = document["made"]
    words = (
        f"Medians of {made['seeds']} seed{'s' if made['seeds'] != 1 else ''}. Made {made['date']} "
        f"on {made['machine']}, PEMI {made['version']}. Figures in full: demo.json beside this "
        "page. Point at a bar or a mark for its value."
    )
    return f"<footer>{escape(words)}</footer>"
