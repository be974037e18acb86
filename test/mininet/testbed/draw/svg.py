# SPDX-License-Identifier: GPL-2.0-or-later
"""Just enough SVG: shapes, text, axes. Colours are CSS classes, so that the same
drawing works on a light and on a dark page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

Scale = Callable[[float], float]

# Blue against orange can be told apart with every common colour blindness.
STYLE = """
  svg, .legend { --ink: #1d2330; --muted: #5f6878; --grid: #e2e5ea; --off: #d0701f; --on: #2563c9;
    --ref: #1d2330; --loss: #b3246f; --held: #7d52c9; --c0: #2563c9; --c1: #d0701f;
    --c2: #1a8a5a; --c3: #7d52c9; --c4: #b3246f; --c5: #6b7f1d; --c6: #0f87a0; --c7: #8a5a3b; }
  @media (prefers-color-scheme: dark) { svg, .legend { --ink: #e8ebf1; --muted: #9aa4b5;
    --grid: #2f3644; --off: #f0954d; --on: #6ea4ff; --ref: #e8ebf1; --loss: #f277b6;
    --held: #b394f5; --c0: #6ea4ff; --c1: #f0954d; --c2: #4fc792; --c3: #b394f5; --c4: #f277b6;
    --c5: #b9cf5e; --c6: #4fc3dd; --c7: #cf9c78; } }
  svg { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
  svg text { fill: var(--ink); }
  svg .muted { fill: var(--muted); }
  svg .strong { font-weight: 600; }
  svg .grid { stroke: var(--grid); stroke-width: 1; }
  svg .axis { stroke: var(--muted); stroke-width: 1; }
  svg .off { fill: var(--off); } svg .on { fill: var(--on); }
  svg .loss { fill: var(--loss); } svg .held { fill: var(--held); }
  svg .line { fill: none; stroke-width: 2.25; stroke-linejoin: round; }
  svg .line.off { stroke: var(--off); fill: none; } svg .line.on { stroke: var(--on); fill: none; }
  svg .line.ref { stroke: var(--ref); stroke-width: 1.5; stroke-dasharray: 5 4; }
  svg .c0 { fill: var(--c0); stroke: none; } svg .c1 { fill: var(--c1); stroke: none; }
  svg .c2 { fill: var(--c2); stroke: none; } svg .c3 { fill: var(--c3); stroke: none; }
  svg .c4 { fill: var(--c4); stroke: none; } svg .c5 { fill: var(--c5); stroke: none; }
  svg .c6 { fill: var(--c6); stroke: none; } svg .c7 { fill: var(--c7); stroke: none; }
  svg .line.c0 { stroke: var(--c0); fill: none; } svg .line.c1 { stroke: var(--c1); fill: none; }
  svg .line.c2 { stroke: var(--c2); fill: none; } svg .line.c3 { stroke: var(--c3); fill: none; }
  svg .line.c4 { stroke: var(--c4); fill: none; } svg .line.c5 { stroke: var(--c5); fill: none; }
  svg .line.c6 { stroke: var(--c6); fill: none; } svg .line.c7 { stroke: var(--c7); fill: none; }
  svg .line.hair { stroke-width: 1; }
  svg .range { stroke: var(--ink); stroke-width: 1.25; opacity: .65; }
"""


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


@dataclass
class Drawing:
    """Collects elements; coordinates are pixels."""

    width: float
    height: float
    label: str

    def __post_init__(self) -> None:
        self._parts: list[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, css: str) -> None:
        """A straight line."""
        at = f'x1="{_number(x1)}" y1="{_number(y1)}" x2="{_number(x2)}" y2="{_number(y2)}"'
        self._parts.append(f'<line class="{css}" {at}/>')

    def rect(
        self, x: float, y: float, width: float, height: float, css: str, tip: str = "", r: float = 0
    ) -> None:
        """A box; `tip` shows when one points at it."""
        size = f'width="{_number(max(width, 0))}" height="{_number(max(height, 0))}"'
        round_ = f' rx="{_number(r)}"' if r else ""
        inner = f"<title>{escape(tip)}</title>" if tip else ""
        at = f'x="{_number(x)}" y="{_number(y)}"'
        self._parts.append(f'<rect class="{css}" {at} {size}{round_}>{inner}</rect>')

    def path(self, points: Sequence[tuple[float, float]], css: str, tip: str = "") -> None:
        """An open line through points."""
        if not points:
            return
        steps = "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
        inner = f"<title>{escape(tip)}</title>" if tip else ""
        self._parts.append(f'<path class="{css}" d="M{steps}">{inner}</path>')

    def text(
        self, x: float, y: float, words: str, css: str = "", anchor: str = "start", size: float = 0
    ) -> None:
        """Words; `anchor` is start, middle or end."""
        more = f' font-size="{_number(size)}"' if size else ""
        css = f' class="{css}"' if css else ""
        at = f'x="{_number(x)}" y="{_number(y)}"'
        self._parts.append(f'<text {at} text-anchor="{anchor}"{css}{more}>{escape(words)}</text>')

    def render(self, *, standalone: bool = False, css: str = "") -> str:
        """`standalone` is a file of its own that brings its colours along."""
        space = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
        style = f"<style>{STYLE}</style>" if standalone else ""
        box = f'viewBox="0 0 {_number(self.width)} {_number(self.height)}"'
        size = f'width="{_number(self.width)}" height="{_number(self.height)}"'
        name = f'role="img" aria-label="{escape(self.label, quote=True)}"'
        css = f' class="{css}"' if css else ""
        body = "\n".join(self._parts)
        return f"<svg{space}{css} {size} {box} {name}>{style}\n{body}\n</svg>"


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """Maps low..high to start..end."""
    span = (high - low) or 1
    return lambda value: start + (value - low) / span * (end - start)


def logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    """The same with equal ratios as equal distances."""
    inner = linear(math.log(low), math.log(high), start, end)
    return lambda value: inner(math.log(max(value, low)))


def nice_ticks(high: float, most: int) -> list[float]:
    """0 and round steps up to the first at or above `high`."""
    step = round_up(max(high, 1e-9) / most)
    return [step * index for index in range(math.ceil(high / step - 1e-9) + 1)]


def round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50, ... and so on downwards."""
    power = 10 ** math.floor(math.log10(value))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= value * 0.999)
