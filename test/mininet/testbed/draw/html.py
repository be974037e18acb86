# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages that need nothing but themselves: the demo's and those of the experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape

from .svg import STYLE, Drawing

# Text in a scaled-down drawing would be too small to read on a phone, so there is a
# drawing for each.
_WIDE, _NARROW = 760, 336

CSS = """
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
  .legend .c0 { background: var(--c0); } .legend .c1 { background: var(--c1); }
  .legend .c2 { background: var(--c2); } .legend .c3 { background: var(--c3); }
  .legend .c4 { background: var(--c4); } .legend .c5 { background: var(--c5); }
  .legend .c6 { background: var(--c6); } .legend .c7 { background: var(--c7); }
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


def document(title: str, body: str) -> str:
    """The whole page."""
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{CSS}</style>\n"
        f"<main>\n{body}\n</main>\n</html>\n"
    )


def section(
    title: str,
    words: str,
    legend: Iterable[tuple[str, str]],
    draw: Callable[[float], Drawing] | None,
    after: str,
) -> str:
    """A card: words, the keys of the drawing (CSS class, name), the drawing, a table."""
    keys = "".join(f'<li><i class="{css}"></i>{escape(name)}</li>' for css, name in legend)
    parts = [f"<section><h2>{escape(title)}</h2>"]
    if words:
        parts.append(f'<p class="soft">{escape(words)}</p>')
    if draw is not None:
        wide, narrow = draw(_WIDE).render(css="wide"), draw(_NARROW).render(css="narrow")
        parts.append(f'<ul class="legend">{keys}</ul>\n{wide}\n{narrow}\n')
    return "".join([*parts, after, "</section>"])


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Cells are text."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<div class="scroll"><table><tr>{top}</tr>{body}</table></div>'
