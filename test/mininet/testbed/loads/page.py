# SPDX-License-Identifier: GPL-2.0-or-later
"""What every browser is asked: a download that its own clock measures, and what is made of it."""

from __future__ import annotations

# A name, because QUIC cannot be forced on an IPv6 address.
NAME = "pemi-test"

# A function of the address to download. It runs on a page of no server, so that the connection
# is made for this.
SCRIPT = """
(async (url) => {
  const start = performance.now();
  const answer = await fetch(url, {cache: "no-store"});
  if (!answer.ok) throw new Error(`the server says ${answer.status}`);
  const reader = answer.body.getReader();
  let bytes = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read())
    bytes += part.value.length;
  const end = performance.now();
  const entry = await new Promise((found) => {
    new PerformanceObserver((list) => list.getEntriesByName(url).forEach(found))
      .observe({type: "resource", buffered: true});
  });
  return {
    bytes,
    fct_ms: end - start,
    handshake_ms: entry.connectEnd - entry.startTime,
    protocol: entry.nextHopProtocol,
  };
})
"""


class BrowserError(Exception):
    """The browser did not do what it should; the message is for a person."""


def metrics(measured: dict, stack: str, size: int) -> dict:
    """As the other clients print them."""
    if measured["protocol"] != "h3":
        raise BrowserError(f"it came by {measured['protocol'] or 'nothing known'} and not by h3")
    if measured["bytes"] != size:
        raise BrowserError(f"{measured['bytes']} of {size} bytes came")
    fct_s = measured["fct_ms"] / 1000
    return {
        "app": "http",
        "stack": stack,
        "bytes": size,
        "protocol": measured["protocol"],
        "fct_s": round(fct_s, 6),
        "handshake_s": round(measured["handshake_ms"] / 1000, 6),
        "goodput_mbps": round(size * 8e-6 / fct_s, 6),
        "complete": True,
    }
