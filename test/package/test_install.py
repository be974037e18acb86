# SPDX-License-Identifier: GPL-2.0-or-later
"""Real opkg and real apk, a router's root directory and a feed on a web server.

OPENWRT_TOOLS is a folder with `opkg` and `usign`, or `apk` of apk-tools 3, as programs that
need no libraries; OPENWRT_TREE OpenWrt's sources, for the shell functions that the packages'
scripts call. Without them there is nothing to try here."""

import functools
import http.server
import os
import shutil
import subprocess
import threading
from pathlib import Path

import feeds
import pytest

TOOLS = os.environ.get("OPENWRT_TOOLS")
TREE = os.environ.get("OPENWRT_TREE")
# Notes who was told what, as procd's would be.
RC_COMMON = """#!/bin/sh
echo "$(basename "$1") $2" >>/var/log/services
"""
NOTED = """#!/bin/sh
echo "rpcd $1" >>/var/log/services
"""
# Debian's busybox crashes when its wget is given a time limit, as apk does.
WGET = """#!/bin/sh
[ "$1 $2" != "-q -T" ] || { shift 3; set -- -q "$@"; }
exec /bin/busybox wget "$@"
"""
PACKAGES = ["pemi", "luci-app-pemi"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Router:
    """A root directory with busybox and the program under test."""

    def __init__(self, root: Path, web: Path):
        self.root = root
        for folder in ("bin", "dev", "etc/init.d", "etc/config", "lib", "tmp", "var/lock"):
            (root / folder).mkdir(parents=True)
        for folder in ("var/log", "usr/bin", "usr/sbin"):
            (root / folder).mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        self.run("/bin/busybox", "--install", "-s", "/bin")
        os.mknod(root / "dev/null", 0o020666, os.makedev(1, 3))
        shutil.copy(Path(TREE) / "package/base-files/files/lib/functions.sh", root / "lib")
        self.program("/etc/rc.common", RC_COMMON)
        self.program("/etc/init.d/rpcd", NOTED)
        self.program("/bin/uci", '#!/bin/sh\necho "$@" >>/var/log/uci\n')
        for name in ("passwd", "group"):
            self.write(f"/etc/{name}", "root:x:0:\n")
        self.write("/tmp/luci-indexcache.1.json", "{}")
        handler = functools.partial(Quiet, directory=web)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.feed = f"http://127.0.0.1:{self.server.server_port}"

    def write(self, path: str, text: str):
        place = self.root / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def program(self, path: str, text: str):
        self.write(path, text)
        (self.root / path[1:]).chmod(0o755)

    def read(self, path: str) -> str:
        place = self.root / path[1:]
        return place.read_text() if place.exists() else ""

    def run(self, *command: str) -> subprocess.CompletedProcess:
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        chroot = ["chroot", self.root, *command]
        return subprocess.run(chroot, env=env, capture_output=True, text=True)

    def told(self) -> list[str]:
        """What services were told since the last time."""
        lines = self.read("/var/log/services").splitlines()
        self.write("/var/log/services", "")
        return lines


class Opkg(Router):
    kind, programs, folder = "ipk", ("opkg", "usign"), "/ipk/x86_64"

    def __init__(self, root: Path, web: Path, keys: list[Path]):
        super().__init__(root, web)
        for program in self.programs:
            shutil.copy(Path(TOOLS) / program, root / "bin")
        files = Path(TREE) / "package/system/opkg/files"
        shutil.copy(files / "opkg-key", root / "usr/sbin")
        conf = (files / "opkg.conf").read_text() + "option check_signature\n"
        self.write("/etc/opkg.conf", conf + "arch all 1\narch noarch 1\narch x86_64 10\n")
        for name, key in zip(("base", "feed"), keys, strict=True):
            # As the README says
            self.write(f"/tmp/{name}.pub", (key / "pemi.pub").read_text())
            assert self.run("opkg-key", "add", f"/tmp/{name}.pub").returncode == 0
        line = f"src/gz base {self.feed}/base\nsrc/gz pemi {self.feed}{self.folder}\n"
        self.write("/etc/opkg/customfeeds.conf", line)

    def update(self):
        return self.run("opkg", "update")

    def install(self, *names):
        return self.run("opkg", "install", *names)

    def upgrade(self):
        return self.run("opkg", "upgrade", *PACKAGES)

    def remove(self, *names):
        return self.run("opkg", "remove", *names)

    def versions(self) -> dict[str, str]:
        lines = self.run("opkg", "list-installed").stdout.splitlines()
        return dict(line.split(" - ") for line in lines)


class Apk(Router):
    kind, programs, folder = "apk", ("apk",), "/apk/x86_64"

    def __init__(self, root: Path, web: Path, keys: list[Path]):
        super().__init__(root, web)
        shutil.copy(Path(TOOLS) / "apk", root / "bin")
        self.program("/usr/bin/wget", WGET)
        for name, key in zip(("base", "feed"), keys, strict=True):
            self.write(f"/etc/apk/keys/{name}.pem", (key / "pemi.pem").read_text())
        lists = f"{self.feed}/base/packages.adb\n{self.feed}{self.folder}/packages.adb\n"
        self.write("/etc/apk/repositories.d/customfeeds.list", lists)
        self.write("/etc/apk/arch", "x86_64\n")
        self.write("/etc/apk/world", "")
        (root / "lib/apk/db").mkdir(parents=True)
        self.write("/lib/apk/db/installed", "")
        (root / "var/cache/apk").mkdir(parents=True)
        (root / "var/cache/misc").mkdir(parents=True)

    def update(self):
        return self.run("apk", "update")

    def install(self, *names):
        return self.run("apk", "add", *names)

    def upgrade(self):
        return self.run("apk", "upgrade", *PACKAGES)

    def remove(self, *names):
        return self.run("apk", "del", *names)

    def versions(self) -> dict[str, str]:
        found = self.run("apk", "list", "-I", "--manifest").stdout
        return dict(line.split() for line in found.splitlines())


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("base", "feed", "other"):
        assert feeds.make_keys(folder / name).returncode == 0
    return [folder / name for name in ("base", "feed", "other")]


@pytest.fixture(params=[Opkg, Apk], ids=["opkg", "apk"])
def router(request, tmp_path, keys):
    kind = request.param
    if not TOOLS or not TREE or os.getuid() != 0:
        pytest.skip("needs OPENWRT_TOOLS, OPENWRT_TREE and root")
    if any(not (Path(TOOLS) / program).exists() for program in kind.programs):
        pytest.skip(f"{TOOLS} has no {' or '.join(kind.programs)}")
    web = tmp_path / "web"
    feeds.lay_out(kind.kind, feeds.pack_base(), keys[0], web / "base")
    feeds.lay_out(kind.kind, feeds.pack(), keys[1], web / kind.folder[1:])
    found = kind(tmp_path / "root", web, keys[:2])
    yield found
    found.server.shutdown()


def said(answer: subprocess.CompletedProcess) -> str:
    return answer.stdout + answer.stderr


def test_installed_from_the_feed(router):
    assert router.update().returncode == 0
    answer = router.install("luci-app-pemi", "luci-i18n-pemi-zh-cn")
    assert answer.returncode == 0, said(answer)
    assert feeds.ABOUT.version == router.versions()["pemi"] == router.versions()["luci-app-pemi"]
    assert router.read("/usr/sbin/pemi") and router.read("/etc/config/pemi")
    assert router.read("/www/luci-static/resources/view/pemi/overview.js")
    lmo = router.root / "usr/lib/lua/luci/i18n/pemi.zh-cn.lmo"
    assert lmo.stat().st_size > 1000
    told = router.told()
    assert told.index("pemi enable") < told.index("pemi start") and "rpcd reload" in told
    assert not router.read("/tmp/luci-indexcache.1.json")
    assert "set luci.languages.zh_cn=简体中文" in router.read("/var/log/uci")
    assert "pemi:x:5443" in router.read("/etc/passwd")


def test_a_wrong_signature_is_refused(router, keys):
    feeds.lay_out(router.kind, feeds.pack(), keys[2], Path(_web(router), router.folder[1:]))
    # opkg says so and goes on with what is left.
    assert "ignature" in said(router.update())
    assert router.install("luci-app-pemi").returncode != 0
    assert not router.read("/usr/sbin/pemi")


def test_a_package_that_was_changed_is_refused(router):
    router.update()
    (package,) = Path(_web(router), router.folder[1:]).glob(f"pemi[_-]{feeds.ABOUT.version}*")
    before = package.read_bytes()
    changed = feeds.pack()[0]
    changed[2].append(feeds.File(feeds.PurePosixPath("usr/sbin/other"), 0o755, b"#!/bin/sh\n"))
    write = feeds.ipk.write if router.kind == "ipk" else feeds.apk.write
    package.write_bytes(write(*changed, feeds.TIME))
    assert package.read_bytes() != before
    assert router.install("pemi").returncode != 0
    assert not router.read("/usr/sbin/pemi") and not router.read("/usr/sbin/other")


def test_upgraded_from_the_version_before(router, keys):
    folder = Path(_web(router), router.folder[1:])
    feeds.lay_out(router.kind, feeds.pack("0.0.9-r1"), keys[1], folder)
    router.update()
    assert router.install("luci-app-pemi").returncode == 0
    assert router.versions()["pemi"] == "0.0.9-r1"
    changed = router.read("/etc/config/pemi").replace("enabled '0'", "enabled '1'")
    router.write("/etc/config/pemi", changed)
    router.told()

    feeds.lay_out(router.kind, feeds.pack(), keys[1], folder)
    router.update()
    answer = router.upgrade()
    assert answer.returncode == 0, said(answer)
    assert router.versions()["pemi"] == feeds.ABOUT.version
    assert router.versions()["luci-app-pemi"] == feeds.ABOUT.version
    assert router.read("/etc/config/pemi") == changed
    # procd would go on with the old program otherwise.
    assert "pemi restart" in router.told()


def test_removed(router):
    router.update()
    assert router.install("luci-app-pemi").returncode == 0
    router.told()
    answer = router.remove("luci-app-pemi", "pemi")
    assert answer.returncode == 0, said(answer)
    assert not {"pemi", "luci-app-pemi"} & router.versions().keys()
    assert not router.read("/usr/sbin/pemi")
    assert not list((router.root / "www").rglob("*.js"))
    told = router.told()
    assert "pemi disable" in told and "pemi stop" in told


def _web(router) -> str:
    return router.server.RequestHandlerClass.keywords["directory"]
