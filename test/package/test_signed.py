# SPDX-License-Identifier: GPL-2.0-or-later
"""The feed: what opkg and apk are told, and that only the keys' owner can tell it."""

import base64
import gzip
import hashlib
import stat
import subprocess
import zlib
from pathlib import Path

import feeds
import meta
import opkg_index
import pack
import packages
import pytest

ARCHES = ("x86_64", "mipsel_24kc")
NAMES = {
    *("pemi", "pemi-tools", "luci-app-pemi", "luci-i18n-pemi-de", "luci-i18n-pemi-zh-cn"),
    "prometheus-node-exporter-lua-pemi",
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ours", "other"):
        assert feeds.make_keys(folder / name).returncode == 0
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """What the end of `make feed` finds."""
    out = tmp_path_factory.mktemp("packages")
    pack_all(out)
    return out


def pack_all(out: Path):
    for kind in ("ipk", "apk"):
        for about, arch, files in feeds.pack():
            arches = [pack.EVERY[kind]] if arch == "all" else ARCHES
            for each in arches:
                pack.pack(kind, each, about, files, out)


@pytest.fixture(scope="module")
def feed(built, keys, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("out") / "feed"
    feeds.make_feed(built, keys / "ours", out, *ARCHES)
    return out


def verified(public: Path, message: Path) -> bool:
    command = ["signify-openbsd", "-V", "-q", "-p", public, "-m", message]
    return subprocess.run([*command, "-x", f"{message}.sig"], capture_output=True).returncode == 0


def entries(index: str) -> list[dict[str, str]]:
    blocks = index.replace("\n ", " ").strip().split("\n\n")
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]


def test_keys_are_their_owners_alone(keys):
    for name in ("pemi.sec", "pemi.key"):
        assert stat.S_IMODE((keys / "ours" / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((keys / "ours").stat().st_mode) == 0o700


def test_keys_are_kept(keys, tmp_path):
    ours = keys / "ours"
    before = {path.name: path.read_bytes() for path in ours.iterdir()}
    again = feeds.make_keys(ours)
    assert again.returncode == 0 and "kept" in again.stdout, again
    assert {path.name: path.read_bytes() for path in ours.iterdir()} == before
    # A part of them is somebody's mistake, and nothing is written over it.
    (tmp_path / "pemi.sec").write_text("secret")
    incomplete = feeds.make_keys(tmp_path)
    assert incomplete.returncode != 0 and "not all keys" in incomplete.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["pemi.sec"]


def test_keys_are_not_added_to_the_repository_by_accident():
    if subprocess.run(["git", "rev-parse"], cwd=feeds.ROOT, capture_output=True).returncode != 0:
        pytest.skip("not a repository, but an unpacked release")
    asked = ["git", "check-ignore", "-q", ".feed-key/pemi.sec"]
    assert subprocess.run(asked, cwd=feeds.ROOT).returncode == 0
    refused = feeds.make_keys(feeds.ROOT / "package/keys")
    assert refused.returncode != 0 and "git does not ignore" in refused.stderr
    assert not (feeds.ROOT / "package/keys").exists()


@pytest.mark.parametrize("arch", ARCHES)
def test_opkg_is_told_what_is_there(feed, arch):
    folder = feed / "ipk" / arch
    index = (folder / "Packages").read_bytes()
    assert gzip.decompress((folder / "Packages.gz").read_bytes()) == index
    listed = entries(index.decode())
    assert {entry["Package"] for entry in listed} == NAMES
    for entry in listed:
        content = (folder / entry["Filename"]).read_bytes()
        assert int(entry["Size"]) == len(content)
        assert entry["SHA256sum"] == hashlib.sha256(content).hexdigest()
        said = packages.read_ipk(folder / entry["Filename"]).fields
        for name in ("Version", "Depends", "Architecture", "Description", "Installed-Size"):
            assert entry[name] == said[name]
        assert entry["Architecture"] in (arch, "all")
        assert not {"Maintainer", "Source", "Require-User"} & entry.keys()


@pytest.mark.parametrize("arch", ARCHES)
def test_only_the_owner_of_the_key_can_tell_opkg(feed, keys, arch, tmp_path):
    index = feed / "ipk" / arch / "Packages"
    assert verified(feed / "pemi.pub", index)
    assert not verified(keys / "other/pemi.pub", index)
    changed = tmp_path / "Packages"
    changed.write_bytes(index.read_bytes().replace(b"Version: 0", b"Version: 9"))
    assert changed.read_bytes() != index.read_bytes()
    (tmp_path / "Packages.sig").write_bytes(index.with_suffix(".sig").read_bytes())
    assert not verified(feed / "pemi.pub", changed)


def adb_blocks(path: Path) -> tuple[bytes, bytes]:
    raw = path.read_bytes()
    assert raw[:4] == b"ADBd"
    raw = zlib.decompress(raw[4:], wbits=-15)
    assert raw[:8] == b"ADB.indx"
    (kind, tree), (other, signature) = packages._blocks(raw[8:])
    assert (kind, other) == (0, 1)
    return tree, signature


def apk_entries(tree: bytes) -> list[dict]:
    (root,) = packages._words(tree, packages._u32(tree, 4))[1:]
    found = []
    for word in packages._words(tree, root):
        info = [packages._value(tree, each) for each in packages._words(tree, word)]
        entry = {name: info[i - 1].decode() for i, name in packages.INFO.items() if info[i - 1]}
        found.append(entry | {"sum": info[2], "size": info[12]})
    return found


@pytest.mark.parametrize("arch", ARCHES)
def test_apk_is_told_what_is_there(feed, arch):
    folder = feed / "apk" / arch
    tree, _ = adb_blocks(folder / "packages.adb")
    listed = apk_entries(tree)
    assert [entry["Package"] for entry in listed] == sorted(NAMES)
    for entry in listed:
        path = folder / f"{entry['Package']}-{entry['Version']}.apk"
        assert entry["size"] == path.stat().st_size
        raw = zlib.decompress(path.read_bytes()[4:], wbits=-15)
        (_, head), *_ = packages._blocks(raw[8:])
        # Of the whole tree of values: the name that a package has for itself is not checked.
        assert entry["sum"] == hashlib.sha256(head).digest()
        assert entry["Architecture"] in (arch, "noarch")


def signed_by(public: Path, path: Path, tmp_path: Path) -> bool:
    """As apk checks it, with openssl."""
    tree, signature = adb_blocks(path)
    head, der = signature[:18], signature[18:]
    assert head[:2] == b"\x00\x04", "version 0, SHA-512"
    form = ["-pubin", "-pubout", "-outform", "DER"]
    answer = subprocess.run(["openssl", "pkey", "-in", public, *form], capture_output=True)
    if head[2:] != hashlib.sha512(answer.stdout[-65:]).digest()[:16]:
        return False
    (tmp_path / "der").write_bytes(der)
    verify = ["openssl", "dgst", "-sha512", "-verify", public, "-signature", tmp_path / "der"]
    message = b"indx" + head + hashlib.sha512(tree).digest()
    return subprocess.run(verify, input=message, capture_output=True).returncode == 0


def test_only_the_owner_of_the_key_can_tell_apk(feed, keys, tmp_path):
    path = feed / "apk/x86_64/packages.adb"
    assert signed_by(feed / "pemi.pem", path, tmp_path)
    assert not signed_by(keys / "other/pemi.pem", path, tmp_path)


def test_the_same_packages_make_the_same_feed(feed, built, keys, tmp_path):
    """But for a random part of apk's signatures."""
    pack_all(tmp_path / "packages")
    feeds.make_feed(tmp_path / "packages", keys / "ours", tmp_path / "feed", *ARCHES)
    files = {path.relative_to(feed) for path in feed.rglob("*") if path.is_file()}
    assert files == {
        path.relative_to(tmp_path / "feed")
        for path in (tmp_path / "feed").rglob("*")
        if path.is_file()
    }
    for name in files:
        if name.name == "packages.adb":
            assert adb_blocks(feed / name)[0] == adb_blocks(tmp_path / "feed" / name)[0]
        else:
            assert (feed / name).read_bytes() == (tmp_path / "feed" / name).read_bytes(), name


def test_what_is_served_has_no_secret_and_explains_itself(feed, keys):
    secrets = [(keys / "ours" / name).read_bytes() for name in ("pemi.sec", "pemi.key")]
    for path in feed.rglob("*"):
        if path.is_file():
            assert not any(secret in path.read_bytes() for secret in secrets)
    text = (feed / "README.txt").read_text()
    for words in ("opkg-key add", "/etc/apk/keys/pemi.pem", "install luci-app-pemi", *ARCHES):
        assert words in text
    # The name under which usign looks for the key
    line = (feed / "pemi.pub").read_text().splitlines()[1]
    assert base64.b64decode(line)[2:10].hex() in text


@pytest.mark.parametrize("arch", ["x86_64"])
def test_the_readmes_lines_are_those_of_the_feed(feed, arch):
    shown = (feeds.ROOT / "README.md").read_text()
    for line in (feed / "README.txt").read_text().splitlines():
        if line.startswith("  "):
            assert line.strip().replace("FEED", "http://192.168.1.2:8000") in shown, line


def test_a_length_that_usign_takes_for_wrong_is_avoided(tmp_path):
    """In old releases, where (64 + length) % 128 is 110 or 111."""
    lengths = set()
    for pad in range(128):
        about = feeds.ABOUT.__class__(**{**vars(feeds.ABOUT), "description": ["x" * (pad + 1)]})
        path = tmp_path / "p.ipk"
        path.write_bytes(feeds.ipk.write(about, "all", [], feeds.TIME))
        index = opkg_index.write([path])
        lengths.add((64 + len(index)) % 128)
        assert index.startswith(b"Package: pemi\n") and index.endswith(b"\n\n")
    assert not lengths & {110, 111} and len(lengths) > 100


def test_a_feed_without_keys_says_how_to_make_them(tmp_path):
    command = [feeds.PORTABLE / "feed.sh", tmp_path / "none", tmp_path / "feed", "x86_64"]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 2 and "make feed-key" in answer.stderr


def test_variables_of_the_makefiles_are_resolved():
    make = meta.Makefile(feeds.ROOT / "luci-app-pemi/Makefile")
    assert make["LUCI_MAINTAINER"] == feeds.ABOUT.maintainer
    with pytest.raises(ValueError, match="no NOTHING"):
        make["NOTHING"]
