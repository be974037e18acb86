#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the capture that package/pemi/test.sh replays: capture.py OUT.

The first packets of a recorded download, as the router would have captured them on the LAN:
what the hop lost on the way to the client is in it, what it lost on the way back is not.
The recording has the first bytes of each; what was ciphertext is a number, so that no two
are alike, and zeros.
"""

import csv
import gzip
import struct
import sys
from pathlib import Path

LOG = Path(__file__).resolve().parents[1] / "sim/captures/quinn-5MB-loss1-seed4.csv.gz"
PACKETS = 450
# One way, of that log
HOP_US = 1000
RAW_IP, IPV4_UDP = 101, 17
PORT = 443
ADDRESSES = {"client": bytes([192, 168, 1, 2]), "server": bytes([192, 0, 2, 1])}


def capture() -> bytes:
    with gzip.open(LOG, "rt") as log:
        rows = [seen(row, number) for number, row in enumerate(csv.DictReader(log))]
    packets = sorted(packet for packet in rows if packet)[:PACKETS]
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, RAW_IP)
    return header + b"".join(
        struct.pack("<4I", us // 1_000_000, us % 1_000_000, len(data), len(data)) + data
        for us, data in packets
    )


def seen(row: dict[str, str], number: int) -> tuple[int, bytes] | None:
    """When and what: as the router sees the packet."""
    down = row["dir"] == "ba"
    if not down and row["fate"] != "ok":
        return None
    time = int(row["us"]) + (0 if down else HOP_US)
    source, target = ("server", "client") if down else ("client", "server")
    client_port = int(row["dport" if down else "sport"])
    ports = (PORT, client_port) if down else (client_port, PORT)
    size = int(row["len"]) + 28
    ip = struct.pack(">BBHIBBH", 0x45, 0, size, 0, 64, IPV4_UDP, 0)
    udp = struct.pack(">4H", *ports, size - 20, 0)
    data = ip + ADDRESSES[source] + ADDRESSES[target] + udp + bytes.fromhex(row["head"])
    return time, (data + struct.pack(">I", number)).ljust(size, b"\0")[:size]


if __name__ == "__main__":
    # Without a name and a time: the same bytes each time
    Path(sys.argv[1]).write_bytes(gzip.compress(capture(), 9, mtime=0))
