# SPDX-License-Identifier: GPL-2.0-or-later
"""What is in the packages found in out/packages: `make test-package` builds some."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import elf
import meta
import packages
import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "files"
OUT = ROOT / "out/packages"
ABOUT = meta.read(ROOT / "package/pemi/Makefile")
TOOLS = meta.read_tools(ROOT / "package/pemi/Makefile")
KIB = 1024

# Machine, bits, big-endian, floating-point registers, largest daemon
TARGETS = {
    "aarch64-unknown-linux-musl": ("aarch64", 64, False, True, 900 * KIB),
    "armv7-unknown-linux-musleabi": ("arm", 32, False, False, 900 * KIB),
    "armv7-unknown-linux-musleabihf": ("arm", 32, False, True, 900 * KIB),
    "i586-unknown-linux-musl": ("i386", 32, False, True, 900 * KIB),
    "mips-unknown-linux-musl": ("mips", 32, True, False, 728 * KIB),
    "mipsel-unknown-linux-musl": ("mips", 32, False, False, 728 * KIB),
    "powerpc-unknown-linux-musl": ("powerpc", 32, True, True, 900 * KIB),
    "riscv64gc-unknown-linux-musl": ("riscv64", 64, False, True, 900 * KIB),
    "x86_64-unknown-linux-musl": ("x86_64", 64, False, True, 900 * KIB),
}
LARGEST_PACKAGE = 400 * KIB
# Longer code, and routers with 16 MB of flash or more
LARGER_PACKAGES = {"arm": 420 * KIB, "powerpc": 460 * KIB}
# What sizes in the documents may be off by: they are measured again when it is more.
STALE = 0.03


def targets() -> dict[str, str]:
    """The Rust target of each architecture."""
    script = """. package/portable/targets.sh
    for arch in "${architectures[@]}"; do select_target "$arch"; echo "$arch $triple"; done"""
    done = subprocess.run(["bash", "-euc", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(line.split() for line in done.stdout.splitlines())


ARCHES = targets()
# Of Debian's emulators, by the first part of the target's name
EMULATORS = {"armv7": "arm", "i586": "i386", "powerpc": "ppc", "riscv64gc": "riscv64"}
# The processor that lacks most: neither PowerPC's floating-point registers nor its `lwsync`
PROCESSORS = {"powerpc": ["-cpu", "e500v2_v10"]}

ipks = [OUT / f"{ABOUT.name}_{ABOUT.version}_{arch}.ipk" for arch in ARCHES]
apks = [OUT / arch / f"{ABOUT.name}-{ABOUT.version}.apk" for arch in ARCHES]
BUILT = [path for path in ipks + apks if path.exists()]


def tools_of(path: Path) -> packages.Package:
    """What was packed together with a daemon's package."""
    path = path.with_name(path.name.replace("pemi", "pemi-tools", 1))
    return packages.read_ipk(path) if path.suffix == ".ipk" else packages.read_apk(path)


def arch_of(path: Path) -> str:
    return path.parent.name if path.suffix == ".apk" else path.stem.split("_", 2)[2]


@pytest.fixture(params=BUILT, ids=lambda path: path.relative_to(OUT).as_posix())
def path(request) -> Path:
    return request.param


@pytest.fixture
def package(path) -> packages.Package:
    return packages.read_ipk(path) if path.suffix == ".ipk" else packages.read_apk(path)


def test_some_packages_are_built():
    assert BUILT, "run: make test-package"


def test_what_it_says_of_itself(path, package):
    fields = package.fields
    assert fields["Package"] == "pemi"
    assert fields["Version"] == ABOUT.version
    assert fields["Architecture"] == arch_of(path)
    assert fields["License"] == "GPL-2.0-or-later"
    assert fields["URL"] == ABOUT.url and fields["Maintainer"] == ABOUT.maintainer
    needs = {"libc", "kmod-nft-queue", "kmod-nft-bridge", "nftables"}
    assert set(fields["Depends"].split(", ")) == needs
    if path.suffix == ".ipk":
        assert fields["Require-User"] == "pemi=5443:pemi=5443"
        assert list(fields)[-1] == "Description"
        assert {int(fields["SourceDateEpoch"])} == package.times


def test_version_is_that_of_the_daemon():
    assert f'version = "{ABOUT.version.split("-")[0]}"' in (ROOT / "Cargo.toml").read_text()


def test_files_are_all_there_and_unchanged(path, package):
    files = package.files()
    ours = {file.relative_to(FILES).as_posix() for file in FILES.rglob("*") if file.is_file()}
    own_records = {name for name in files if name.startswith("lib/apk/packages/pemi.")}
    assert set(files) == ours | {"usr/sbin/pemi"} | own_records
    assert bool(own_records) == (path.suffix == ".apk")
    for name in ours:
        assert files[name].data == (FILES / name).read_bytes(), name


def test_modes_and_owners(path, package):
    for name, entry in package.entries.items():
        root = (0, 0, "", "") if path.suffix == ".ipk" else (b"root", b"root")
        assert entry.owner == root, name
        if entry.data is None or name == "usr/sbin/pemi" or name.startswith("etc/init.d/"):
            assert entry.mode == 0o755, name
        elif name.startswith("etc/config/"):
            assert entry.mode == 0o600, name
        else:
            assert entry.mode == 0o644, name


def test_every_folder_comes_before_what_is_in_it(package):
    seen = set()
    for name in package.entries:
        assert name in (".",) or Path(name).parent.as_posix() in seen, name
        seen.add(name)


def test_a_changed_configuration_is_kept(path, package):
    files = package.files()
    assert "etc/config/pemi" in files
    if path.suffix == ".ipk":
        assert package.conffiles == ["/etc/config/pemi"]
        return
    records = {
        name.removeprefix("lib/apk/packages/pemi."): entry.data.decode().splitlines()
        for name, entry in files.items()
        if name.startswith("lib/apk/packages/")
    }
    assert records["conffiles"] == ["/etc/config/pemi"]
    (line,) = records["conffiles_static"]
    answer = subprocess.run(["sha256sum", FILES / "etc/config/pemi"], capture_output=True)
    assert line == f"/etc/config/pemi {answer.stdout.decode().split()[0]}"
    assert records["rusers"] == ["pemi=5443:pemi=5443"]
    later = {"list", "conffiles", "conffiles_static"}
    assert set(records["list"]) == {
        f"/{name}" for name in files if name.removeprefix("lib/apk/packages/pemi.") not in later
    }


def test_scripts(path, package):
    names = {
        ".ipk": {"postinst": "default_postinst", "prerm": "default_prerm"},
        ".apk": {
            "post-install": "default_postinst",
            "post-upgrade": "default_postinst",
            "pre-deinstall": "default_prerm",
        },
    }[path.suffix]
    # What runs goes on otherwise, when apk has put another program in its place.
    own = "/etc/init.d/pemi restart"
    assert own in package.scripts["postinst-pkg" if path.suffix == ".ipk" else "post-upgrade"]
    assert set(package.scripts) - {"postinst-pkg"} == set(names)
    for name, call in names.items():
        text = package.scripts[name]
        assert text.startswith("#!/bin/sh\n") and call in text
        # Nothing happens where there is no OpenWrt, as when an image is made elsewhere.
        away = {"IPKG_INSTROOT": "/nonexistent", "PATH": os.environ["PATH"]}
        subprocess.run(["sh", "-c", text, name], env=away, check=True)


def test_the_daemon(path, package, tmp_path):
    arch = arch_of(path)
    machine, bits, big_endian, hard_float, largest = TARGETS[ARCHES[arch]]
    data = package.files()["usr/sbin/pemi"].data
    wanted = elf.Elf(
        *(machine, bits, big_endian),
        static=True,
        # An eighth larger on MIPS, where flash is small: package/portable/README.md.
        position_independent=machine != "mips",
        stripped=True,
        hard_float=hard_float,
    )
    assert elf.read(data) == wanted
    assert len(data) <= largest
    assert path.stat().st_size <= LARGER_PACKAGES.get(machine, LARGEST_PACKAGE)

    processor = ARCHES[arch].split("-")[0]
    emulator = shutil.which(f"qemu-{EMULATORS.get(processor, processor)}-static")
    if not emulator:
        pytest.skip("no qemu-user-static here")
    daemon = tmp_path / "pemi"
    daemon.write_bytes(data)
    daemon.chmod(0o755)
    config = tmp_path / "config.json"
    config.write_text("{}")
    run = [emulator, *PROCESSORS.get(processor, []), daemon]
    answer = subprocess.run([*run, "--version"], capture_output=True, text=True)
    assert answer.stdout == f"pemi {ABOUT.version.split('-')[0]}\n"
    check = [*run, "check", "--config", config]
    answer = subprocess.run(check, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


def test_the_tools(path, package, tmp_path):
    """They are of the same build; the daemon becomes them."""
    tools = tools_of(path)
    assert set(tools.fields["Depends"].split(", ")) == {"libc", "pemi"}
    assert tools.fields["Version"] == TOOLS.version == package.fields["Version"]
    programs = [name for name in tools.files() if not name.startswith("lib/apk/packages/")]
    assert programs == ["usr/sbin/pemi-tools"]
    if path.suffix == ".ipk":
        assert "Require-User" not in tools.fields
    # Any machine runs its own kind.
    if arch_of(path) != "x86_64":
        return
    command = [tmp_path / "pemi", "options"]
    for name, entry in {**package.files(), **tools.files()}.items():
        if name.startswith("usr/sbin/"):
            program = tmp_path / Path(name).name
            program.write_bytes(entry.data)
            program.chmod(0o755)
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 0 and "cache_kib" in answer.stdout
    (tmp_path / "pemi-tools").unlink()
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 1
    assert "in the package pemi-tools" in answer.stderr


def rows() -> dict[str, tuple[str, int, int]]:
    """Of the table of sizes: target, KiB of the daemon, KiB of the package."""
    found = {}
    for line in (ROOT / "package/portable/README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and cells[3].isdigit():
            for arch in cells[0].split(", "):
                found[arch.strip("`")] = (cells[2].strip("`"), int(cells[3]), int(cells[4]))
    return found


def test_documents_list_every_architecture():
    assert {arch: target for arch, (target, _, _) in rows().items()} == ARCHES


def test_sizes_in_documents_are_those_of_the_build(path, package):
    _, daemon, ipk = rows()[arch_of(path)]
    size = len(package.files()["usr/sbin/pemi"].data)
    assert abs(size / KIB - daemon) <= STALE * daemon, f"the daemon has {size / KIB:.0f} KiB"
    if path.suffix == ".ipk":
        size = path.stat().st_size
        assert abs(size / KIB - ipk) <= STALE * ipk, f"the package has {size / KIB:.0f} KiB"


def test_nothing_tells_where_it_was_built(package):
    data = package.files()["usr/sbin/pemi"].data
    for folder in (ROOT, Path.home()):
        assert str(folder).encode() + b"/" not in data


def test_packing_again_gives_the_same_bytes(path, package, tmp_path):
    """Whatever the files' times are, the time zone, or the mask of modes."""
    binary = tmp_path / "pemi"
    binary.write_bytes(package.files()["usr/sbin/pemi"].data)
    tools = tools_of(path).files()["usr/sbin/pemi-tools"].data
    binary.with_name("pemi-tools").write_bytes(tools)
    arch, (time,) = arch_of(path), package.times
    pack = ROOT / "package/portable/pack.py"
    subprocess.run(
        [sys.executable, pack, path.suffix[1:], arch, binary, tmp_path],
        env={"SOURCE_DATE_EPOCH": str(time), "TZ": "Asia/Kathmandu"},
        umask=0o077,
        cwd="/",
        check=True,
    )
    assert (tmp_path / path.relative_to(OUT)).read_bytes() == path.read_bytes()


@pytest.mark.skipif(not shutil.which("apk"), reason="no apk-tools here")
def test_apk_tools_agree(path):
    if path.suffix == ".apk":
        subprocess.run(["apk", "verify", "--allow-untrusted", path], check=True)
