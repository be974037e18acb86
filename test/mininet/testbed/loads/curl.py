# SPDX-License-Identifier: GPL-2.0-or-later
"""curl's library downloads once over HTTP/3, and its own clock measures it.

The library is that of the Python package curl_cffi, called without that package: so that the
guest of test/wifi needs no more than Python itself.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from pathlib import Path

# From curl/curl.h: numbers that never change.
_URL, _NO_PROXY, _WRITE_DATA = 10_002, 10_177, 10_001
_VERIFY_PEER, _VERIFY_HOST, _HTTP_VERSION, _TIMEOUT_MS = 64, 81, 84, 155
_NO_SIGNAL, _FAIL_ON_ERROR = 99, 45
_HTTP_3_ONLY = 31
_TOLD_HTTP_VERSION = 0x20_0000 + 46
_TOLD_BYTES, _TOLD_TOTAL_US, _TOLD_HANDSHAKE_US = (0x60_0000 + of for of in (8, 50, 56))
_HTTP_3 = 30


class CurlError(Exception):
    """What the library said; the message is for a person."""


class Curl:
    """One transfer."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.curl_easy_init.restype = ctypes.c_void_p
        self._library.curl_easy_strerror.restype = ctypes.c_char_p
        self._handle = ctypes.c_void_p(self._library.curl_easy_init())

    def set(self, option: int, value: int | bytes | ctypes.c_void_p) -> None:
        """An option; numbers are `long` for it."""
        if isinstance(value, int):
            value = ctypes.c_long(value)
        self._check(self._library.curl_easy_setopt(self._handle, ctypes.c_int(option), value))

    def perform(self) -> None:
        """All of it."""
        self._check(self._library.curl_easy_perform(self._handle))

    def told(self, what: int) -> int:
        """What it knows afterwards."""
        value = ctypes.c_int64()
        told = self._library.curl_easy_getinfo(
            self._handle, ctypes.c_int(what), ctypes.byref(value)
        )
        self._check(told)
        return value.value

    def _check(self, code: int) -> None:
        if code != 0:
            raise CurlError(self._library.curl_easy_strerror(code).decode())


def download(library: Path, server: str, size: int, timeout_s: float) -> dict:
    """Believes any certificate; the result is as those of the other clients."""
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    curl = Curl(library)
    curl.set(_URL, f"https://{server}/bytes/{size}".encode())
    # Where it writes by itself, without calling back.
    curl.set(_WRITE_DATA, ctypes.c_void_p(libc.fopen(b"/dev/null", b"w")))
    curl.set(_NO_PROXY, b"*")
    for option, value in (
        (_VERIFY_PEER, 0),
        (_VERIFY_HOST, 0),
        (_HTTP_VERSION, _HTTP_3_ONLY),
        (_TIMEOUT_MS, round(timeout_s * 1000)),
        (_NO_SIGNAL, 1),
        (_FAIL_ON_ERROR, 1),
    ):
        curl.set(option, value)
    curl.perform()
    if curl.told(_TOLD_HTTP_VERSION) != _HTTP_3:
        raise CurlError("it did not come by HTTP/3")
    if curl.told(_TOLD_BYTES) != size:
        raise CurlError(f"{curl.told(_TOLD_BYTES)} of {size} bytes came")
    fct_s = curl.told(_TOLD_TOTAL_US) / 1e6
    return {
        "app": "http",
        "stack": "curl",
        "bytes": size,
        "protocol": "h3",
        "fct_s": fct_s,
        "handshake_s": curl.told(_TOLD_HANDSHAKE_US) / 1e6,
        "goodput_mbps": round(size * 8e-6 / fct_s, 6),
        "complete": True,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="curl", description=__doc__)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--connect", required=True, help="the server's address and port")
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--timeout", type=float, required=True, help="seconds")
    parser.add_argument("--json", type=Path, required=True, help="where the result goes")
    given = parser.parse_args()
    try:
        result = download(given.library, given.connect, given.bytes, given.timeout)
    except CurlError as error:
        print(f"curl: {error}", file=sys.stderr)
        return 1
    given.json.write_text(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
