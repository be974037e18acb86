#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds all fuzz targets and runs them in turn, from the corpus in the repository and
from what was found before. Ends with 1 if an input made one of them fail."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
CRATE = HERE / "fuzz"
CORPUS = HERE / "corpus"
BUILD = REPOSITORY / "test/target/fuzz"
# What was found, and not looked through yet; not in the repository.
FOUND = REPOSITORY / "out/fuzz"
TARGETS = sorted(path.stem for path in (CRATE / "targets").glob("*.rs"))

# Coverage as libFuzzer wants it. The compiler has it since long, so none but the
# ordinary one is needed, and there is no unsafe code behind the targets that an address
# sanitizer would watch. Comparisons are not traced: it takes a third of the speed, and
# what they would find (names, magic numbers) is in the corpus.
RUSTFLAGS = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
]
# Memory is kept from one run to the next, instead of being given back to the kernel.
KEEP = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "1000000000"}
# Longest inputs, in bytes: enough for everything that a target does, and no more, since
# a short input takes less time. What strangers send fits into one Ethernet frame.
LONGEST = {"engine": 128, "nfqueue": 512, "pcap": 6000, "sidekick": 512, "ubus": 1024}
LONGEST_OTHERS = 600
# A single input that takes longer than this many seconds has found an endless loop.
HANG = 10
# Of a target's seeds in the repository, in bytes.
ROOM = 60_000


@dataclass
class Outcome:
    """What came of one target."""

    runs: int = 0
    seconds: float = 0.0
    coverage: int = 0
    inputs: int = 0
    crash: Path | None = None
    log: Path | None = None

    @property
    def speed(self) -> float:
        return self.runs / self.seconds if self.seconds else 0.0


def host() -> str:
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True)
    return re.search(r"^host: (\S+)$", version.stdout, re.MULTILINE)[1]


def build() -> Path:
    """The folder of the programs. With the target named, scripts of the build are not
    made with the same flags."""
    triple = host()
    environment = os.environ | {"RUSTFLAGS": " ".join(RUSTFLAGS)}
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--target", triple]
    command += ["--manifest-path", CRATE / "Cargo.toml", "--target-dir", BUILD]
    subprocess.run(command, check=True, env=environment)
    return BUILD / triple / "release"


def limits(target: str) -> list[str]:
    return [f"-max_len={LONGEST.get(target, LONGEST_OTHERS)}", f"-timeout={HANG}"]


def fuzz(program: Path, seconds: int, seed: int) -> Outcome:
    target = program.name
    found = FOUND / target
    found.mkdir(parents=True, exist_ok=True)
    outcome = Outcome(log=FOUND / f"{target}.log")
    before = set(FOUND.glob(f"{target}-*"))
    # Weighing inputs by how rare their code is (entropic) costs the engine a quarter of its
    # runs and reaches no more.
    command = [program, *limits(target), f"-max_total_time={seconds}", "-entropic=0"]
    command += [f"-seed={seed}"]
    command += [f"-artifact_prefix={FOUND}/{target}-", found, CORPUS / target]
    started = time.monotonic()
    with outcome.log.open("w") as log:
        ended = subprocess.run(
            command, stdout=log, stderr=subprocess.STDOUT, check=False, env=os.environ | KEEP
        )
    outcome.seconds = time.monotonic() - started
    for line in outcome.log.read_text(errors="replace").splitlines():
        if match := re.match(r"#(\d+)\s.*cov: (\d+) .*corp: (\d+)", line):
            outcome.runs, outcome.coverage, outcome.inputs = map(int, match.groups())
    if ended.returncode != 0:
        new = sorted(set(FOUND.glob(f"{target}-*")) - before)
        outcome.crash = new[0] if new else outcome.log
    return outcome


def run_all(targets: list[str], seconds: int, seed: int) -> bool:
    programs = build()
    print(f"{'target':<9}{'runs/s':>9}{'runs':>11}{'coverage':>10}{'inputs':>8}  result")
    well = True
    for target in targets:
        outcome = fuzz(programs / target, seconds, seed)
        result = "ok" if outcome.crash is None else f"FAILED: {outcome.crash}"
        figures = f"{outcome.speed:>9.0f}{outcome.runs:>11}{outcome.coverage:>10}"
        print(f"{target:<9}{figures}{outcome.inputs:>8}  {result}", flush=True)
        if outcome.crash is not None:
            well = False
            tell(programs / target, outcome)
    return well


def tell(program: Path, outcome: Outcome) -> None:
    """Why it failed, and how to see it again."""
    lines = outcome.log.read_text(errors="replace").splitlines()
    reasons = [n for n, line in enumerate(lines) if "panicked at" in line or "ERROR" in line]
    first = reasons[0] if reasons else max(len(lines) - 5, 0)
    print("\n".join(f"    {line}" for line in lines[first : first + 3]))
    if outcome.crash != outcome.log:
        print(f"  again:   {program} {outcome.crash}")
        print(f"  smaller: {program} -minimize_crash=1 -max_total_time=60 {outcome.crash}")


def update(targets: list[str]) -> None:
    """Puts into the repository what is needed to reach all that is reached by the
    corpus, the generated seeds and what was found: for each piece of code one of the
    smallest inputs."""
    programs = build()
    for target in targets:
        with tempfile.TemporaryDirectory() as folder:
            seeds, chosen = Path(folder, "seeds"), Path(folder, "chosen")
            chosen.mkdir()
            generate = ["cargo", "run", "--quiet", "--manifest-path", HERE.parent / "Cargo.toml"]
            generate += ["-p", "pemi-fuzz", "--bin", "fuzz-seeds", target, seeds]
            subprocess.run(generate, check=True)
            sources = [path for path in (CORPUS / target, seeds, FOUND / target) if path.exists()]
            command = [programs / target, *limits(target), "-set_cover_merge=1"]
            command += ["-use_counters=0", chosen, *sources]
            subprocess.run(command, check=True, capture_output=True)
            files = sorted(chosen.iterdir(), key=lambda path: path.stat().st_size)
            shutil.rmtree(CORPUS / target, ignore_errors=True)
            (CORPUS / target).mkdir(parents=True)
            room = ROOM
            for path in files:
                room -= path.stat().st_size
                if room < 0:
                    break
                # The name that libFuzzer gives, the SHA-1 of the content, in short.
                shutil.copyfile(path, CORPUS / target / path.name[:12])
            kept = list((CORPUS / target).iterdir())
            size = sum(path.stat().st_size for path in kept)
            print(f"{target:<9}{len(kept):>5} of {len(files)} inputs, {size} bytes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    parser.add_argument(
        "--seed", type=int, default=0, help="of what is tried; 0: another each time"
    )
    parser.add_argument("--corpus", action="store_true", help="update the corpus instead")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    options = parser.parse_args()
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error(
            f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}"
        )
    targets = options.targets or TARGETS
    if options.corpus:
        update(targets)
        return 0
    return 0 if run_all(targets, options.seconds, options.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
