#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions that a packet takes on its way through a router, whatever the machine.

QEMU runs client, router and server in one guest whose clock counts instructions. What is
found goes to standard output as one JSON object, a table of it to standard error.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RECORDED = HERE / "counted.json"
# How QEMU is started, and instructions in a second of the guest's clock.
MACHINES = {
    "mipsel": ("qemu-system-mipsel -M malta -cpu 24Kf -icount shift=2,sleep=on", 1e9 / 4),
    "x86_64": ("qemu-system-x86_64 -M pc -cpu Nehalem,+rdrand -icount shift=2,sleep=on", 1e9 / 4),
}
# As OpenWrt's kernels are built; and the cures of flaws that an emulated processor has not.
KERNEL = "console=ttyS0 quiet panic=-1 init_on_alloc=0 mitigations=off"
# A guest that hangs must not hang the benchmark. It says something after some seconds of a
# processor, which on a busy machine, at idle priority, are many of the clock: so it hangs when it
# has had so many of one and said nothing, or when QEMU neither ran nor waited for one for most of
# a minute.
LONGEST_S = 150
SILENT_S = 60
SILENT_SHARE = 0.05
# A boot that hangs is tried again, and people are told; one that always does is an error.
BOOTS = 2
# Kernels of MIPS try the processor's timer and take another one when it seemed not to work, as it
# does in four of ten boots of an emulated one. QEMU's model of that timer then counts on by itself,
# and when 32 bits of it have passed (25.8 s) may set it, for ever, to the time that it is. Such a
# guest says so at once, and is booted again: 20 are unsuited one after the other once in 10^8.
UNSUITED = 20
FLOWS = 8
# Sender and receiver alone: what is beyond them is the router's share.
BASE = "direct"
# Rows that are recorded and compared, and those that only the parts need; ./guest/init says
# what each is.
CHECKED = (
    *("kernel", "kernel_nat", "flowtable", "accept_all", "pemi", "pemi_ring", "pemi_ring_short"),
    *("clean", "resting"),
)
RINGS = ("pemi_ring", "pemi_ring_short")
# Those that may not become dearer. The others are the kernel's own, to compare with: no change of
# ours makes them what they are, and where its memory lies after a boot is worth a tenth of the
# cheapest (`flowtable` took 5,473 and 6,041 in two boots, 0.3 % apart within each).
OURS = (*RINGS, "pemi", "clean", "resting")
FURTHER = ("accept_all_gathered", "accept_all_heads")
# Packets for one downlink packet: half of one comes back.
PACKETS = 1.5
# By what a recorded figure may be exceeded.
LIMIT = 1.10
# By what the latency beside a ring may exceed the kernel's own.
LATER = 1.05
SHOWN = "pemi_ring_short"

# Packets that the daemon may not have seen: those are cheap, and no measure of anything.
UNSEEN = 0.01


class Problem(Exception):
    """Why something cannot be measured; for people to read."""


class Hangs(Problem):
    """The guest comes to no end."""


def say(text: str) -> None:
    """Tell people what is going on."""
    print(text, file=sys.stderr, flush=True)


def scheduled(process: int) -> tuple[float, float, bool]:
    """Seconds that a process's threads ran and waited for a processor; whether one does now."""
    ran, waited, ready = 0.0, 0.0, False
    for task in Path(f"/proc/{process}/task").iterdir():
        # One may end meanwhile; that of the guest's processor does not.
        with contextlib.suppress(OSError):
            fields = (task / "schedstat").read_text().split()
            ran += int(fields[0]) / 1e9
            waited += int(fields[1]) / 1e9
            ready |= (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    return ran, waited, ready


def watched(command: list[str], console: Path) -> str:
    """Run QEMU to its end and give what it said besides the console."""
    with console.open("wb") as out, tempfile.TemporaryFile() as errors:
        qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)
        try:
            since, before = time.monotonic(), 0.0
            said, heard = 0, 0.0
            while True:
                try:
                    qemu.wait(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    ran, waited, ready = scheduled(qemu.pid)
                if console.stat().st_size > said:
                    said, heard = console.stat().st_size, ran
                if ran - heard > LONGEST_S:
                    raise Hangs(f"the guest said nothing in {ran - heard:.0f} s of a processor")
                if time.monotonic() - since < SILENT_S:
                    continue
                # What it waits is told when that is over. A kernel that does not count tells none.
                silent = ran + waited - before < SILENT_SHARE * SILENT_S
                if ran > 0 and silent and not ready:
                    raise Hangs(f"the guest did nothing for {SILENT_S} s")
                since, before = time.monotonic(), ran + waited
        finally:
            qemu.kill()
            qemu.wait()
        errors.seek(0)
        return errors.read().decode(errors="replace")


def suited(command: list[str], console: Path) -> str:
    """Run QEMU until a guest has come up with the timer that it needs, and to that one's end."""
    for _ in range(UNSUITED):
        errors = watched(command, console)
        if b"counted: unsuited" not in console.read_bytes():
            return errors
    raise Problem(f"none of {UNSUITED} boots took the processor's own timer")


def boot(arch: str, rows: list[str], rounds: int, seconds: float, latency: str) -> list[str]:
    """Run the guest and give the lines that it wrote."""
    folder = ROOT / "out" / "bench" / arch
    subprocess.run([HERE / "guest" / "image.sh", arch], check=True, stdout=sys.stderr)
    with tempfile.TemporaryDirectory() as work:
        settings = Path(work) / "etc" / "bench"
        settings.parent.mkdir()
        settings.write_text(
            f"rows='{' '.join(rows)}' rounds={rounds} seconds={seconds} flows={FLOWS} "
            f"latency={latency}\n"
        )
        archive = subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"],
            input=b"etc\netc/bench\n", cwd=work, check=True, capture_output=True,
        ).stdout  # fmt: skip
        initrd = Path(work) / "initrd"
        initrd.write_bytes((folder / "initrd.cpio").read_bytes() + archive)
        command = [*MACHINES[arch][0].split(), "-accel", "tcg", "-rtc", "clock=vm", "-m", "256"]
        command += ["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"]
        command += ["-kernel", str(folder / "kernel"), "-initrd", str(initrd), "-append", KERNEL]
        console = folder / "console.log"
        for left in reversed(range(BOOTS)):
            try:
                errors = suited(command, console)
                break
            except Hangs as problem:
                if left == 0:
                    raise
                say(f"{arch}: {problem}, after {console.read_bytes()[-200:]}; once more")
    text = console.read_text(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.startswith("counted: ")]
    lines = [line.removeprefix("counted: ") for line in lines]
    if not lines or lines[-1] != "end":
        raise Problem(f"the guest came to no end: {text[-500:]} {errors}")
    return lines


def read_row(text: str, seconds: float, rate: float) -> dict[str, float]:
    """Read what the guest's server has seen."""
    fields = [field for field in text.split(";") if field]
    try:
        packets = int(fields[0]) * seconds
        idle = [int(field.split()[4]) for field in fields[1:3]]
        row = {"instructions": rate * seconds / packets, "idle": idle[1] - idle[0]}
        if len(fields) > 3:
            before, after = ([int(n) for n in field.split()] for field in fields[3:5])
            row["thread"] = (after[0] - before[0]) * rate / 1e9 / packets
            row["wake_ups"] = (after[2] - before[2]) / packets
    except (IndexError, ValueError, ZeroDivisionError) as error:
        raise Problem(f"the guest has seen: {text}") from error
    return row


def check_seen(name: str, status: dict) -> None:
    """Make sure that a row is about packets that went through the daemon."""
    unseen = sum(queue["missed"] for queue in status["queues"])
    if unseen > UNSEEN * status["packets"]["quic"]:
        raise Problem(f"{name}: {unseen} packets passed unseen")
    seen_by = status["capture"]
    if name in RINGS and seen_by["used"] != "ring":
        raise Problem(f"{name}: no ring: {seen_by['reason']}")


def count(arch: str, rows: list[str], rounds: int, seconds: float, latency: str = "no") -> dict:
    """Count all rows of one machine."""
    rate = MACHINES[arch][1]
    seen: dict[str, list[dict]] = {}
    result: dict = {"rows": {}}
    for line in boot(arch, [BASE, *rows], rounds, seconds, latency):
        word, _, rest = line.partition(" ")
        name, _, rest = rest.partition(" ")
        if word == "problem":
            raise Problem(line)
        if word == "status":
            check_seen(name, json.loads(rest))
        elif word == "row":
            seen.setdefault(name, []).append(read_row(rest, seconds, rate))
        elif word == "latency":
            took = [round(int(ns) * rate / 1e9) for ns in rest.split()]
            result.setdefault("latency", {})[name] = dict(zip(("p50", "p90"), took, strict=True))
        elif word == "engine":
            engine = json.loads(f"{name} {rest}")["engine"]["ns_per_packet"]
            result["engine"] = round(engine * rate / 1e9 * PACKETS)
    base = statistics.median(row["instructions"] for row in seen[BASE])
    for name, found in seen.items():
        if any(row["idle"] for row in found):
            raise Problem(f"{name}: the processor was idle, so time is not instructions")
        totals = [row["instructions"] for row in found]
        middle = statistics.median(totals)
        row = {"router": round(middle - base), "all": round(middle)}
        row["spread_percent"] = round(50 * (max(totals) - min(totals)) / middle, 1)
        if "wake_ups" in found[0]:
            row["thread"] = round(statistics.median(row["thread"] for row in found))
            row["wake_ups"] = round(statistics.median(row["wake_ups"] for row in found), 2)
        result["rows"][name] = row
    return result


def parts(result: dict) -> dict[str, int]:
    """Give what the daemon adds to forwarding, by parts.

    A wake-up is what accept-all takes more when it is woken for each packet, by how much
    more often it is woken then; the copy is what it takes less with heads alone.
    """
    rows = result["rows"]
    each, gathered = rows["accept_all"], rows["accept_all_gathered"]
    once = (each["router"] - gathered["router"]) / (each["wake_ups"] - gathered["wake_ups"])
    copied = gathered["router"] - rows["accept_all_heads"]["router"]
    queue = gathered["router"] - rows["kernel"]["router"] - gathered["wake_ups"] * once - copied
    found = {
        "forwarding": rows["kernel"]["router"],
        "wake_up": rows["pemi"]["wake_ups"] * once,
        "read_and_verdict": queue,
        "copy": copied,
        "engine": result["engine"],
    }
    found["rest"] = rows["pemi"]["router"] - sum(found.values())
    return {name: round(value) for name, value in found.items()}


def table(arch: str, result: dict) -> str:
    """Write a result for people."""
    lines = [f"{arch}: instructions a downlink packet and half an uplink one"]
    lines.append(f"{'':<22}{'router':>8}{'all':>8}{'+-%':>6}{'thread':>8}{'wake-ups':>10}")
    for name, row in result["rows"].items():
        line = f"{name:<22}{row['router']:>8}{row['all']:>8}{row['spread_percent']:>6}"
        if "thread" in row:
            line += f"{row['thread']:>8}{row['wake_ups']:>10}"
        lines.append(line)
    lines += [f"  {name:<20}{value:>8}" for name, value in result.get("parts", {}).items()]
    for name, took in result.get("latency", {}).items():
        lines.append(f"latency {name:<14}{took['p50']:>8}{took['p90']:>8}  p50, p90")
    return "\n".join(lines)


def verdicts(arch: str, result: dict) -> list[str]:
    """Say which figures are beyond what is recorded."""
    recorded = json.loads(RECORDED.read_text())[arch]
    found = [
        f"{arch} {name}: {row['router']} instructions, {recorded[name]} are recorded"
        for name, row in result["rows"].items()
        if name in OURS and name in recorded and row["router"] > LIMIT * recorded[name]
    ]
    latency = {name: took["p50"] for name, took in result.get("latency", {}).items()}
    own, beside = (latency.get(name) for name in ("kernel", SHOWN))
    if own and beside and beside > LATER * own:
        found.append(f"{arch} latency beside a ring: {beside} instructions, {own} without PEMI")
    return found


def record(results: dict) -> None:
    """Write down what later ones are compared with."""
    known = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    for arch, result in results.items():
        known[arch] = {name: result["rows"][name]["router"] for name in CHECKED}
    RECORDED.write_text(json.dumps(known, indent=2) + "\n")


def main() -> int:
    """Count, and with --check compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("arch", nargs="*", help=f"of {', '.join(MACHINES)}; default: all")
    parser.add_argument("--rows", help="these alone, with commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.8, help="of the guest, for a row")
    parser.add_argument("--latency", action="store_true", help="how long a packet takes, too")
    parser.add_argument("--check", action="store_true", help="only the rows that are recorded")
    parser.add_argument("--record", action="store_true", help="what this finds holds from now on")
    args = parser.parse_args()
    unknown = set(args.arch) - set(MACHINES)
    if unknown:
        parser.error(f"no such machine: {', '.join(unknown)}")
    rows = [*CHECKED, *FURTHER, "engine", "let_go"]
    if args.check:
        known = json.loads(RECORDED.read_text()).values()
        rows = [*(row for row in CHECKED if any(row in its for its in known)), "let_go"]
    if args.rows:
        rows = args.rows.split(",")
    results, beyond = {}, []
    for arch in args.arch or MACHINES:
        try:
            latency = "yes" if args.latency else "no"
            result = count(arch, rows, args.rounds, args.seconds, latency)
        except (Problem, subprocess.SubprocessError) as problem:
            say(f"{arch}: {problem}")
            return 1
        if {*FURTHER, "engine"} <= set(rows):
            result["parts"] = parts(result)
        say(table(arch, result))
        results[arch] = result
        if args.check:
            beyond += verdicts(arch, result)
    if args.record:
        record(results)
    print(json.dumps(results, indent=2))
    for line in beyond:
        say(f"too many: {line}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
