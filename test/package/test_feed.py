# SPDX-License-Identifier: GPL-2.0-or-later
"""The packages as OpenWrt's own makefiles understand them, here and in its own feeds."""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import collector
import luci
import meta
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, APP = ROOT / "package/pemi", ROOT / "luci-app-pemi"
COLLECTOR = ROOT / "package/prometheus-node-exporter-lua-pemi"
UPSTREAM = ROOT / "package/upstream.py"
ABOUT = meta.read(PACKAGE / "Makefile")
TREE = os.environ.get("OPENWRT_TREE")


@pytest.fixture(scope="module")
def upstream(tmp_path_factory) -> Path:
    """A release's tarball, and checkouts with both packages in them."""
    folder = tmp_path_factory.mktemp("upstream")
    (folder / f"pemi-{ABOUT.version.split('-')[0]}.tar.gz").write_bytes(b"a release")
    feeds = Path(TREE) / "feeds" if TREE else None
    for name, part in (("packages", "lang"), ("luci", "luci.mk")):
        (folder / name / "lang/rust").mkdir(parents=True)
        (folder / name / "luci.mk").touch()
        # Makefiles there include what is beside them.
        if feeds:
            shutil.rmtree(folder / name / "lang")
            (folder / name / "luci.mk").unlink()
            (folder / name / part).symlink_to(feeds / name / part)
    answer = put(folder, "--draft")
    assert answer.returncode == 0, answer.stderr
    return folder


def put(folder: Path, *options: str) -> subprocess.CompletedProcess:
    (tarball,) = folder.glob("*.tar.gz")
    command = [UPSTREAM, *options, tarball, folder / "packages", folder / "luci"]
    return subprocess.run(command, capture_output=True, text=True)


def dump_of(folder: Path) -> list[dict[str, str]]:
    """What OpenWrt's build learns of the packages of a Makefile."""
    if not TREE:
        pytest.skip("OPENWRT_TREE is not set: a buildroot or SDK with feeds/packages")
    make = ["make", "-r", "-s", "--no-print-directory", f"TOPDIR={TREE}", "DUMP=1"]
    answer = subprocess.run([*make, "-C", folder], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    blocks = answer.stdout.split("\n@@\n")[:-1]
    return [dict(re.findall(r"^([\w-]+): +(.*)$", block, re.MULTILINE)) for block in blocks]


@pytest.fixture(params=["here", "upstream"])
def dump(request, upstream) -> dict[str, str]:
    folder = {"here": PACKAGE, "upstream": upstream / "packages/net/pemi"}[request.param]
    found, tools = dump_of(folder)
    assert tools["Package"] == "pemi-tools" and "+pemi" in tools["Depends"].split()
    assert tools["Version"] == found["Version"]
    return found


def test_metadata(dump):
    assert dump["Package"] == "pemi"
    assert dump["Version"] == ABOUT.version
    assert dump["Require-User"] == ABOUT.user
    assert dump["Build-Depends"] == "rust/host"
    words = dump["Depends"].split()
    needs = {word.lstrip("+") for word in words if word.startswith("+")}
    assert needs == {*ABOUT.depends, *meta.LINKED_IN}
    assert any(word.startswith("@(aarch64||") for word in words)


def test_portable_packages_of_the_app_are_those_of_luci_mk():
    dumped = {found["Package"]: found for found in dump_of(APP)}
    made = {about.name: about for about, _ in luci.packages(APP)}
    assert dumped.keys() == made.keys()
    for name, about in made.items():
        found = dumped[name]
        assert {word.lstrip("+") for word in found["Depends"].split()} == set(about.depends)
        assert found["Description"].strip() == about.description[0]
        for field in ("version", "section", "license", "maintainer", "url"):
            known = found.get("URL" if field == "url" else field.capitalize(), "")
            assert known == getattr(about, field), (name, field)


@pytest.mark.parametrize("where", ["here", "upstream"])
def test_the_collector_is_understood(where, upstream):
    name = COLLECTOR.name
    (dumped,) = dump_of(COLLECTOR if where == "here" else upstream / "packages/utils" / name)
    ((about, _),) = collector.packages(COLLECTOR)
    assert (dumped["Package"], dumped["Version"]) == (name, ABOUT.version)
    assert {word.lstrip("+") for word in dumped["Depends"].split()} == set(about.depends)


def test_the_collector_goes_upstream(upstream):
    folder = upstream / "packages/utils" / COLLECTOR.name
    text = (folder / "Makefile").read_text()
    assert "about.mk" not in text and "PEMI_" not in text and f"URL:={ABOUT.url}" in text
    assert f"PKG_VERSION:={ABOUT.version.split('-')[0]}\n" in text
    for path in (COLLECTOR / "files").rglob("*.lua"):
        assert (folder / path.relative_to(COLLECTOR)).read_bytes() == path.read_bytes()


def test_both_packages_are_of_the_same_people_version_and_licence():
    (app, _), *_ = luci.packages(APP)
    for field in ("version", "maintainer", "license", "url"):
        assert getattr(app, field) == getattr(ABOUT, field)
    assert re.fullmatch(r".+ <\S+@\S+>", ABOUT.maintainer), "a name and an address"


def test_what_goes_upstream_is_a_release_and_not_this_repository(upstream):
    folder = upstream / "packages/net/pemi"
    text = (folder / "Makefile").read_text()
    said = dict(re.findall(r"^(PKG_\w+):=(.*)$", text, re.MULTILINE))
    (tarball,) = upstream.glob("*.tar.gz")
    assert said["PKG_HASH"] == hashlib.sha256(tarball.read_bytes()).hexdigest()
    assert said["PKG_SOURCE"].endswith(".tar.gz") and said["PKG_SOURCE_URL"].startswith("https:")
    assert (f"{said['PKG_VERSION']}-r{said['PKG_RELEASE']}", said["PKG_MAINTAINER"]) == (
        ABOUT.version,
        ABOUT.maintainer,
    )
    assert "include ../../lang/rust/rust-package.mk" in text and "CARGO_PKG_PROFILE" in text
    ours = ("REPOSITORY", "about.mk", "# here", "# end", "PEMI_URL", "PEMI_REL", "Build/Prepare")
    for word in ours:
        assert word not in text, word
    assert {path.name for path in folder.iterdir()} == {"Makefile", "test.sh", "test.pcap.gz"}
    assert os.access(folder / "test.sh", os.X_OK)


def test_the_app_goes_upstream_with_all_that_luci_mk_takes(upstream):
    folder = upstream / "luci/applications/luci-app-pemi"
    text = (folder / "Makefile").read_text()
    assert "include ../../luci.mk" in text and "about.mk" not in text and "PEMI_" not in text
    for part in ("htdocs", "root", "po"):
        for path in (APP / part).rglob("*"):
            assert (folder / path.relative_to(APP)).exists(), path
    assert "#: applications/luci-app-pemi/htdocs/" in (folder / "po/de/pemi.po").read_text()
    assert not (folder / "eslint.config.mjs").exists()


def test_what_is_not_ready_does_not_go_upstream(upstream):
    refused = put(upstream)
    assert refused.returncode != 0 and "placeholder" in refused.stderr
    (tarball,) = upstream.glob("*.tar.gz")
    command = [UPSTREAM, "--draft", tarball, upstream / "luci/applications", upstream / "luci"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode != 0 and "not the right checkout" in refused.stderr
    command[2] = tarball.with_name("pemi-9.9.9.tar.gz")
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode != 0 and "about.mk" in refused.stderr


def test_putting_it_there_again_changes_nothing(upstream):
    def state() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in upstream.rglob("*/pemi*/*") if path.is_file()}

    before = state()
    (upstream / "packages/net/pemi/left-over").touch()
    assert put(upstream, "--draft").returncode == 0
    assert state() == before


def test_panics_do_not_unwind_whatever_openwrts_build_wants():
    """Its settings are keys of the profile `release`; a profile's own win."""
    text = (ROOT / "Cargo.toml").read_text()
    profile = re.search(r"^\[profile\.openwrt\]\n(.*?)^\n", text, re.MULTILINE | re.DOTALL)[1]
    for line in ('panic = "abort"', "lto = true", "codegen-units = 1", "overflow-checks = false"):
        assert f"{line}\n" in profile


def run_test_sh(path: str, *arguments: str) -> subprocess.CompletedProcess:
    env = {"PATH": f"{path}:{os.environ['PATH']}"}
    command = [PACKAGE / "test.sh", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True)


def test_openwrts_ci_runs_the_daemon(tmp_path):
    """With the debug build of this machine; make test-package has it built."""
    version = ABOUT.version.split("-")[0]
    done = run_test_sh(ROOT / "target/debug", "pemi", version)
    assert done.returncode == 0, done.stderr
    done = run_test_sh(ROOT / "target/debug", "pemi-tools", version)
    assert done.returncode == 0, done.stderr
    assert "losses        inferred" in done.stdout
    assert run_test_sh(ROOT / "target/debug", "pemi", "9.9.9").returncode != 0
    # It is asked for every package of the folder.
    assert run_test_sh(tmp_path, "other", version).returncode == 0


def test_the_bundled_capture_is_the_recording(tmp_path):
    made = tmp_path / "test.pcap.gz"
    subprocess.run([ROOT / "test/package/capture.py", made], check=True)
    bundled = gzip.decompress((PACKAGE / "test.pcap.gz").read_bytes())
    assert gzip.decompress(made.read_bytes()) == bundled
    assert made.stat().st_size < 16 * 1024


def test_modes_are_those_of_the_portable_packages():
    """Both must treat files/ alike; the feed's rules are shell."""
    text = (PACKAGE / "Makefile").read_text()
    assert "chmod 0755 $(1)/etc/init.d/*" in text
    assert "chmod 0600 $(1)/etc/config/*" in text
