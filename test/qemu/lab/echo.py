# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP packets there and back, with nothing but the standard library:

echo.py server ADDRESS PORT     sends back what comes
echo.py client ADDRESS PORT     on each line `N PAUSE` of its input sends N packets, one
                                after the other, so many seconds after the answer to
                                the one before, and prints how many came back

The client's first packet is the beginning of a QUIC connection (RFC 9000, 17.2.2),
those after it look like protected ones.
"""

from __future__ import annotations

import os
import socket
import sys
import time

_CONNECTION = bytes(range(8))


def _payload(first: bool) -> bytes:
    if first:
        head = b"\xc3\x00\x00\x00\x01\x08" + _CONNECTION + b"\x00\x00\x44\x96"
        return head + os.urandom(1200 - len(head))
    return b"\x43" + _CONNECTION + os.urandom(91)


def _main(role: str, ip: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as end:
        if role == "server":
            end.bind((ip, port))
            print("ready", flush=True)
            while True:
                data, sender = end.recvfrom(2048)
                end.sendto(data, sender)
        end.connect((ip, port))
        end.settimeout(1)
        print("ready", flush=True)
        first = True
        for line in sys.stdin:
            back = 0
            packets, pause = line.split()
            for _ in range(int(packets)):
                end.send(_payload(first))
                first = False
                try:
                    end.recv(2048)
                    back += 1
                except TimeoutError:
                    continue
                time.sleep(float(pause))
            print(back, flush=True)


_main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
