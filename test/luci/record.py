#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records what a real daemon answers, into fixtures/: as root, two minutes and a half.

Each file holds the answers of a second for some seconds on end; server.py plays them.
"""

import json
import tempfile
import time
from pathlib import Path

from lab import SERVER, Daemon, Lab, Space

HERE = Path(__file__).resolve().parent
FRAMES = 20


def frames(daemon: Daemon, count: int) -> list[dict]:
    taken = []
    start = time.monotonic()
    for number in range(count):
        # The daemon takes a sample a second: so is the recording.
        time.sleep(max(0, start + number - time.monotonic()))
        taken.append({"status": daemon.ask("status"), **daemon.ask("flows", limit=1000)})
    return taken


def record(name: str, daemon: Daemon, count: int = 3) -> None:
    seconds = frames(daemon, count)
    answer = {"frames": seconds, **daemon.ask("history", seconds=150)}
    path = HERE / "fixtures" / f"{name}.json"
    path.write_text(json.dumps(answer, separators=(",", ":")) + "\n")
    print(path.name, path.stat().st_size, "bytes")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        router = Space()
        router.run("ip link set lo up")
        lab = Lab(router)
        settings = {"device": "lan0", "direction": "down"}
        daemon = Daemon(router, Path(folder), **settings)
        try:
            record("idle", daemon)
            chatter = "import socket as s; u = s.socket(s.AF_INET, s.SOCK_DGRAM)\n"
            chatter += f"for _ in range(400): u.sendto(b'hello', ('{SERVER}', 443))"
            lab.start(lab.client, "/usr/bin/python3", "-c", chatter).wait()
            record("noquic", daemon)
            daemon.close()

            lab.serve()
            daemon = Daemon(router, Path(folder), **settings)
            downloads = [lab.download(size) for size in (900_000_000, 300_000_000, 150_000_000)]
            time.sleep(125)
            record("running", daemon, FRAMES)
            daemon.close()

            daemon = Daemon(router, Path(folder), **settings)
            opening = "import socket as s, os\n"
            opening += "for _ in range(1000):\n u = s.socket(s.AF_INET, s.SOCK_DGRAM)\n"
            opening += " for _ in range(3): u.sendto(b'\\x40' + os.urandom(200), "
            opening += f"('{SERVER}', 443))"
            lab.start(lab.client, "/usr/bin/python3", "-c", opening).wait()
            while len(daemon.ask("flows", limit=1000)["flows"]) < 980:
                time.sleep(0.1)
            record("many", daemon, 1)
            daemon.close()

            for process in downloads:
                process.kill()
                process.wait()
            # Where the kernel has no queue for nftables, the daemon says so in `errors`.
            daemon = Daemon(router, Path(folder), firewall="nft", **settings)
            time.sleep(1)
            record("errors", daemon)
        finally:
            daemon.close()
            lab.close()
            router.close()


if __name__ == "__main__":
    main()
