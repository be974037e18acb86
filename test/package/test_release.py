# SPDX-License-Identifier: GPL-2.0-or-later
"""`make release`: what it refuses, and what it makes of a small repository like ours."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = [
    *("package/about.mk", "package/release.py", "Cargo.toml", "Cargo.lock", "test/Cargo.lock"),
    *("test/fuzz/fuzz/Cargo.lock", "src/pemi/Cargo.toml", "src/engine/Cargo.toml"),
]
# In place of ours, which would compile eight daemons.
MAKEFILE = """
tarball:
	mkdir -p out && sed -n 's/^PKG_VERSION:=//p' package/about.mk >version
	git archive HEAD >out/pemi-$$(cat version).tar.gz; rm version
feed:
	mkdir -p $(FEED) && echo "$(ARCHES)" >$(FEED)/README.txt
"""
CHANGELOG = """# Changelog

## [Unreleased]

## [9.1.0] - 2030-01-02

### Added

- `a thing`: which does something.

## [0.1.0] - 2026-01-01

### Added

- The first.

## [9.2.0] - 2031-01-01
"""


@pytest.fixture
def repository(tmp_path) -> Path:
    for name in COPIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / ".gitignore").write_text("out\n.feed-key\n")
    (tmp_path / ".feed-key").mkdir()
    for name in ("pemi.sec", "pemi.key"):
        (tmp_path / ".feed-key" / name).touch()
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "all"]):
        git(tmp_path, *command)
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    who = {f"GIT_{role}_{what}": "a@b.example" for role in ("AUTHOR", "COMMITTER") for what in WHO}
    command = ["git", "-C", folder, *arguments]
    return subprocess.check_output(command, env={**os.environ, **who}, text=True)


WHO = ("NAME", "EMAIL")


def release(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    who = {f"GIT_{role}_{what}": "a@b.example" for role in ("AUTHOR", "COMMITTER") for what in WHO}
    command = [folder / "package/release.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **who})


def refused(folder: Path, version: str) -> str:
    before = git(folder, "rev-parse", "HEAD")
    done = release(folder, version)
    assert done.returncode != 0
    assert git(folder, "rev-parse", "HEAD") == before and not (folder / "out/release").exists()
    return done.stderr


def test_a_release_has_everything_that_is_served(repository):
    done = release(repository, "9.1.0", "mipsel_24kc", "x86_64")
    assert done.returncode == 0, done.stdout + done.stderr
    out = repository / "out/release/9.1.0"
    message = (out / "tag-message.txt").read_text()
    assert message == "PEMI 9.1.0\n\n### Added\n\n- `a thing`: which does something.\n"
    assert "git tag -s v9.1.0" in done.stdout and git(repository, "tag") == ""
    assert (out / "feed/README.txt").read_text() == "mipsel_24kc x86_64\n"
    assert (out / "pemi-9.1.0.tar.gz").stat().st_size > 0
    checked = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=out)
    assert checked.returncode == 0
    assert len((out / "SHA256SUMS").read_text().splitlines()) == 3
    assert git(repository, "log", "-1", "--format=%s") == "release: 9.1.0\n"
    assert git(repository, "status", "--porcelain") == ""
    # Once more: nothing to commit, and the same.
    sums = (out / "SHA256SUMS").read_bytes()
    assert release(repository, "9.1.0", "mipsel_24kc", "x86_64").returncode == 0
    assert (out / "SHA256SUMS").read_bytes() == sums
    assert git(repository, "rev-list", "--count", "HEAD") == "2\n"


def test_the_version_is_everywhere_then(repository):
    assert release(repository, "9.1.0").returncode == 0
    assert "\nPKG_VERSION:=9.1.0\nPKG_RELEASE:=1\n" in (repository / "package/about.mk").read_text()
    changed = git(repository, "diff", "--unified=0", "HEAD~", "HEAD").splitlines()
    added = [line for line in changed if line[0] == "+" and not line.startswith("+++")]
    removed = [line for line in changed if line[0] == "-" and not line.startswith("---")]
    assert len(added) == len(removed) and all("9.1.0" in line for line in added)
    for lock in ("Cargo.lock", "test/Cargo.lock", "test/fuzz/fuzz/Cargo.lock"):
        text = (repository / lock).read_text()
        assert 'name = "pemi-engine"\nversion = "9.1.0"\n' in text, lock
        # Those of others stay.
        assert text.count("source =") == (ROOT / lock).read_text().count("source =")


def test_what_is_not_ready_is_refused(repository):
    assert "no section" in refused(repository, "9.3.0")
    assert "no section" in refused(repository, "9.2.0"), "an empty one"
    assert "older than" in refused(repository, "0.0.9")
    for odd in ("1.2", "v1.2.3", "1.2.3-rc1", ""):
        assert "no version" in refused(repository, odd)
    git(repository, "tag", "v9.1.0")
    assert "already" in refused(repository, "9.1.0")
    git(repository, "tag", "-d", "v9.1.0")
    (repository / "new").touch()
    assert "not committed" in refused(repository, "9.1.0")
    (repository / "new").unlink()
    (repository / ".feed-key/pemi.key").unlink()
    assert "make feed-key" in refused(repository, "9.1.0")
