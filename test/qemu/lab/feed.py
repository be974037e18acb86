# SPDX-License-Identifier: GPL-2.0-or-later
"""A feed on a web server in the WAN, and what may become of it: the version before, and one that
somebody else has signed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

from . import ROOT, path
from .namespace import Namespace, die_with_parent

sys.path[:0] = [str(ROOT / "package" / "portable"), str(ROOT / "test" / "package")]
import feeds  # noqa: E402 - where it is has to be said first
import packages  # noqa: E402

BEFORE = "0.0.9-r1"
NOW = feeds.ABOUT.version
# Whose keys Makefile's test-qemu signs with.
KEYS = ROOT / "out" / "test-key"
_PORT = 80


class Feed:
    """What the web server has is changed under way, as a feed's owner would."""

    url = f"http://{path.SERVER[4]}"

    def __init__(self, server: Namespace, made: Path, kind: str, arch: str, work: Path) -> None:
        """`made` is what `make feed` has made; opkg reads what is of kind `ipk`, apk `apk`."""
        self._server, self._made, self._work = server, made, work
        self._kind, self._arch = kind, arch
        self._web = work / "web"

    def __enter__(self) -> Feed:
        shutil.rmtree(self._work, ignore_errors=True)
        self._web.mkdir(parents=True)
        serve = ["-u", "-m", "http.server", str(_PORT), "--directory", str(self._web)]
        self._process = self._server.popen(
            [sys.executable, *serve],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        self._process.stdout.readline()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def _folder(self) -> Path:
        return self._web / self._kind / self._arch

    def offer_now(self) -> None:
        """What was made, as it was made."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._made, self._web, dirs_exist_ok=True)

    def offer_before(self) -> None:
        """The same packages as if of the version before, signed with the same key."""
        self.offer_now()
        self._offer(BEFORE, KEYS)

    def offer_forged(self) -> None:
        """What somebody without the key would like to be installed."""
        keys = self._work / "other"
        feeds.make_keys(keys)
        self._offer("9.0.0-r1", keys)

    def _offer(self, version: str, keys: Path) -> None:
        (package,) = (self._made / "ipk" / self._arch).glob("pemi_*.ipk")
        entry = packages.read_ipk(package).entries["usr/sbin/pemi"]
        daemon = feeds.File(PurePosixPath("usr/sbin/pemi"), 0o755, entry.data)
        packed = feeds.pack(version, daemon, self._arch)
        feeds.lay_out(self._kind, packed, keys, self._folder)
