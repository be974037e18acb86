#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes a release of the last commit: release.py VERSION [ARCH...]

CHANGELOG.md has to have a section of that version, and the tree nothing that is not committed. The
version is written where it stands, as a commit of its own; out/release/VERSION gets the sources,
the signed feed, the message of the tag and the sums of all files. Nothing is tagged or sent: the
lines for that are printed.
"""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ABOUT, MANIFEST, CHANGELOG = "package/about.mk", "Cargo.toml", "CHANGELOG.md"
# Of the product's crates, which all of them name.
LOCKS = ("Cargo.lock", "test/Cargo.lock", "test/fuzz/fuzz/Cargo.lock")
# Where Makefile's feed looks for the keys, and what it needs of them.
KEYS, SECRET = os.environ.get("FEED_KEYS", ".feed-key"), ("pemi.sec", "pemi.key")
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    version, arches = sys.argv[1], sys.argv[2:]
    complaint = wrong(version)
    if complaint:
        sys.exit(f"release: {complaint}")
    notes = section(version)
    if present() != version:
        write(version)
        git("commit", "--quiet", "--all", "--message", f"release: {version}")
    out = ROOT / "out/release" / version
    out.mkdir(parents=True, exist_ok=True)
    make("tarball")
    tarball = out / f"pemi-{version}.tar.gz"
    tarball.write_bytes((ROOT / "out" / tarball.name).read_bytes())
    make("feed", f"ARCHES={' '.join(arches)}", f"FEED={out / 'feed'}")
    (out / "tag-message.txt").write_text(f"PEMI {version}\n\n{notes}\n")
    (out / "SHA256SUMS").write_text(sums(out))
    print(f"{out}: sources, feed, tag-message.txt, SHA256SUMS. Look at them; then")
    print(f"  git tag -s v{version} --cleanup=verbatim -F {out / 'tag-message.txt'}")
    print(f"  git push origin HEAD v{version}")
    print(f"and serve {out / 'feed'} (package/README.md).")


def wrong(version: str) -> str | None:
    """What there is against it."""
    if not VERSION.fullmatch(version):
        return f"{version!r} is no version: three numbers, as in 1.2.3 (make release VERSION=1.2.3)"
    if git("status", "--porcelain"):
        return "there are changes that are not committed: git status"
    if git("tag", "--list", f"v{version}"):
        return f"there is a v{version} already"
    if _numbers(version) < _numbers(present()):
        return f"{version} is older than {present()}, which {ABOUT} has"
    if section(version) is None:
        return f"{CHANGELOG} has no section '## [{version}] - YEAR-MONTH-DAY' that says something"
    if not all((ROOT / KEYS / name).exists() for name in SECRET):
        return f"no keys for the feed in {KEYS}; make them once: make feed-key"
    return None


def present() -> str:
    """The one place where it stands; Cargo.toml and the lock files follow it."""
    return re.search(r"^PKG_VERSION:=(.*)$", (ROOT / ABOUT).read_text(), re.MULTILINE)[1]


def section(version: str) -> str | None:
    """What the changelog says of it."""
    head = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)"
    found = re.search(head, (ROOT / CHANGELOG).read_text(), re.MULTILINE | re.DOTALL)
    return found[1].strip() or None if found else None


def write(version: str):
    old = present()
    _replace(ABOUT, rf"^PKG_VERSION:={re.escape(old)}$", f"PKG_VERSION:={version}")
    _replace(ABOUT, r"^PKG_RELEASE:=\d+$", "PKG_RELEASE:=1")
    _replace(MANIFEST, rf'^version = "{re.escape(old)}"$', f'version = "{version}"')
    crates = [
        re.search(r'^name = "(.*)"$', path.read_text(), re.MULTILINE)[1]
        for path in [*ROOT.glob("src/*/Cargo.toml"), *ROOT.glob("src/*/*/Cargo.toml")]
    ]
    for lock in LOCKS:
        for crate in crates:
            # Those of a registry have a line `source` after these two.
            text = rf'(name = "{crate}"\nversion = ")[^"]*("\n(?!source))'
            _replace(lock, text, rf"\g<1>{version}\g<2>", least=0)


def _replace(name: str, pattern: str, text: str, least: int = 1):
    path = ROOT / name
    content, count = re.subn(pattern, text, path.read_text(), flags=re.MULTILINE)
    if count < least:
        sys.exit(f"release: {name}: nothing like {pattern}")
    path.write_text(content)


def sums(folder: Path) -> str:
    """As sha256sum writes and checks them."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n"
        for path in files
        if path.name != "SHA256SUMS"
    ]
    return "".join(lines)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"release: git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def make(*arguments: str):
    command = ["make", "--no-print-directory", "-C", str(ROOT), *arguments]
    if subprocess.run(command).returncode != 0:
        sys.exit(f"release: make {arguments[0]} has failed; the same command goes on from here")


if __name__ == "__main__":
    main()
