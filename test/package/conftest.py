# SPDX-License-Identifier: GPL-2.0-or-later
"""A root directory like a router's: busybox, the real uci and jshn, our files, and
stand-ins for what only OpenWrt has. The init script runs in it by chroot."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
STANDINS = REPOSITORY / "test/package/standins"
TOOLS = REPOSITORY / "out/realtools/native"
PEMI = REPOSITORY / "target/debug/pemi"

LOGGER = """#!/bin/sh
while getopts t:p:s option; do
	case $option in p) level=${OPTARG#*.} ;; esac
done
shift $((OPTIND - 1))
echo "$level $*" >>/var/log/messages
"""
# Says what it was asked, knows our table, and fails like the kernel would otherwise.
NFT = """#!/bin/sh
{ echo "nft $*"; [ "$1" != -f ] || cat; } >>/var/log/nft
[ "$*" != "-a list chain inet fw4 forward" ] || cat /var/state/fw4
[ "$1" != list ] || [ -e /var/state/table ]
"""
FIREWALL = """#!/bin/sh
echo "$@" >>/var/log/firewall
"""


class Router:
    def __init__(self, root: Path):
        self.root = root
        for folder in ("bin", "sbin", "usr/sbin", "usr/bin", "etc/rc.d", "tmp", "dev", "var/log"):
            (root / folder).mkdir(parents=True)
        for folder in ("var/state", "var/run/ubus", "var/lock", "usr/share/libubox"):
            (root / folder).mkdir(parents=True)
        shutil.copytree(STANDINS, root, dirs_exist_ok=True, ignore=lambda *_: ["README.md"])
        # What procd would be told is all that is of interest.
        (root / "sbin/procd-standin").unlink()
        shutil.copytree(REPOSITORY / "files", root, dirs_exist_ok=True)
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        self.chroot("/bin/busybox", "--install", "-s", "/bin")
        for name in ("uci", "jshn"):
            shutil.copy(TOOLS / "bin" / name, root / "bin" / name)
        shutil.copy(TOOLS / "share/libubox/jshn.sh", root / "usr/share/libubox/jshn.sh")
        self.program("/usr/bin/logger", LOGGER)
        self.program("/usr/sbin/nft", NFT)
        self.program("/etc/init.d/firewall", FIREWALL)
        (root / "bin/logger").unlink(missing_ok=True)
        self.copy_with_libraries(PEMI, "/usr/sbin/pemi")
        os.mknod(root / "dev/null", 0o020666, os.makedev(1, 3))
        self.write("/etc/passwd", "root:x:0:0::/:/bin/sh\npemi:x:5443:5443::/:/bin/false\n")
        self.write("/etc/group", "root:x:0:\npemi:x:5443:\n")
        self.write("/etc/config/network", "config interface 'lan'\nconfig interface 'guest'\n")
        self.write("/etc/config/firewall", "config defaults\n")
        self.devices(lan="br-lan")

    def copy_with_libraries(self, program: Path, to: str):
        shutil.copy(program, self.root / to[1:])
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
        for library in re.findall(r"(/\S+) \(0x", listed.stdout):
            place = self.root / library[1:]
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, place)

    def program(self, path: str, text: str):
        self.write(path, text)
        (self.root / path[1:]).chmod(0o755)

    def write(self, path: str, text: str):
        place = self.root / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def read(self, path: str) -> str:
        place = self.root / path[1:]
        return place.read_text() if place.exists() else ""

    def chroot(self, *command: str) -> subprocess.CompletedProcess:
        path = "/usr/sbin:/usr/bin:/sbin:/bin"
        return subprocess.run(
            ["chroot", self.root, *command],
            env={"PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def service(self, *arguments: str) -> subprocess.CompletedProcess:
        """`service pemi ...`; fails on what a shell would complain about."""
        (self.root / "var/log/messages").unlink(missing_ok=True)
        done = self.chroot("/bin/sh", "/etc/rc.common", "/etc/init.d/pemi", *arguments)
        assert not re.search(r"not found|syntax error|bad |rc.common:", done.stderr), done.stderr
        return done

    def uci(self, *commands: str):
        for command in commands:
            done = self.chroot("uci", *command.split(" ", 1))
            assert done.returncode == 0, (command, done.stderr)
        self.chroot("uci", "commit")

    def devices(self, **networks: str):
        lines = "".join(f"{network} {device}\n" for network, device in networks.items())
        self.write("/var/state/devices", lines)

    @property
    def log(self) -> list[str]:
        return self.read("/var/log/messages").splitlines()

    @property
    def told(self) -> dict | None:
        """What procd knows of the service."""
        text = self.read("/var/run/procd/told.json")
        return json.loads(text) if text else None

    @property
    def instance(self) -> dict | None:
        return self.told["instances"].get("instance1") if self.told else None

    @property
    def config(self) -> dict | None:
        """What the daemon would read."""
        text = self.read("/var/etc/pemi/config.json")
        return json.loads(text) if text else None


@pytest.fixture
def router(tmp_path) -> Router:
    return Router(tmp_path / "root")
