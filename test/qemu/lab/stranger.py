# SPDX-License-Identifier: GPL-2.0-or-later
"""Somebody who was not asked, and what becomes of it, with nothing but the standard library:

stranger.py knock FROM TO       sends from UDP port 443 what looks like the beginning of a
                                QUIC connection and then anything, to ports of TO
stranger.py scan FROM FIRST     such a beginning to many IPv6 addresses from FIRST on
stranger.py greet FROM TO       a client's first datagram to a server's port 443
stranger.py watch DEVICE        on each line of its input prints as JSON what has come in by
                                the device since the last one: [kind, from, to, count] each
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import struct
import sys
from collections import Counter

PORT = 443
PAYLOADS = 16
SCANNED = 2048
_MARK = b"let me in "
_ALL = 3
_BUFFER = 16 << 20


def _long(kind: int, length: int) -> bytes:
    """RFC 9000, section 17.2: 0 Initial, 2 Handshake."""
    head = bytes([0xC3 | kind << 4]) + b"\x00\x00\x00\x01\x08" + bytes(range(8)) + b"\x00"
    if kind == 0:
        head += b"\x00"
    head += struct.pack("!H", 0x4000 | length - len(head) - 2)
    return head + os.urandom(length - len(head))


def _socket(own: str, port: int) -> socket.socket:
    end = socket.socket(socket.AF_INET6 if ":" in own else socket.AF_INET, socket.SOCK_DGRAM)
    end.bind((own, port))
    return end


def knock(own: str, to: str) -> None:
    with _socket(own, PORT) as end:
        for port, opening in ((161, _long(2, 86)), (162, _long(0, 1200))):
            end.sendto(opening, (to, port))
            for number in range(PAYLOADS):
                end.sendto(_MARK + bytes([number]), (to, port))


def scan(own: str, first: str) -> None:
    with _socket(own, PORT) as end:
        for number in range(SCANNED):
            end.sendto(_long(0, 86), (str(ipaddress.ip_address(first) + number), 161))


def greet(own: str, to: str) -> None:
    with _socket(own, 0) as end:
        end.sendto(_long(0, 1200), (to, PORT))


def watch(device: str) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL)) as link:
        link.setsockopt(socket.SOL_SOCKET, 33, _BUFFER)  # SO_RCVBUFFORCE
        link.bind((device, _ALL))
        link.setblocking(False)
        print("ready", flush=True)
        for _ in sys.stdin:
            seen: Counter[tuple[str, str, str]] = Counter()
            while True:
                try:
                    frame, (_, _, way, *_) = link.recvfrom(2048)
                except BlockingIOError:
                    break
                if way != socket.PACKET_OUTGOING and (kind := _read(frame)):
                    seen[kind] += 1
            print(json.dumps([[*kind, count] for kind, count in seen.items()]), flush=True)


def _read(frame: bytes) -> tuple[str, str, str] | None:
    packet = frame[14:]
    match int.from_bytes(frame[12:14], "big"):
        case 0x0806:
            return "search", _address(packet[14:18]), _address(packet[24:28])
        case 0x0800:
            protocol, own, to, body = packet[9], packet[12:16], packet[16:20], packet[20:]
        case 0x86DD:
            protocol, own, to, body = packet[6], packet[8:24], packet[24:40], packet[40:]
        case _:
            return None
    match protocol, body[0]:
        case (1, 8) | (58, 128):
            return "ping", _address(own), _address(to)
        case 58, 135:
            return "search", _address(own), _address(body[8:24])
        case 17, _:
            kind = "payload" if body[8:].startswith(_MARK) else "udp"
            return kind, _address(own), _address(to)
        case _:
            return None


def _address(raw: bytes) -> str:
    return str(ipaddress.ip_address(raw))


if __name__ == "__main__":
    {"knock": knock, "scan": scan, "greet": greet, "watch": watch}[sys.argv[1]](*sys.argv[2:])
