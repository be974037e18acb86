# SPDX-License-Identifier: GPL-2.0-or-later
"""Signatures of a feed's indexes. The work is done by signify, whose format is that of
OpenWrt's usign, and openssl."""

import base64
import hashlib
import re
import subprocess
from pathlib import Path

SIGNIFY = "signify-openbsd"
# How much of a sum names a key in apk's signatures
KEY_ID = 16
# An uncompressed point of prime256v1, the last of what openssl writes of a public key
POINT = 65


def signify(message: Path, key: Path):
    """Writes `message`.sig. Signing again gives the same bytes (Ed25519)."""
    _run(SIGNIFY, "-S", "-s", key, "-m", message, "-x", f"{message}.sig")


def signify_key_id(public: Path) -> str:
    """What usign calls the key, which is also its name in /etc/opkg/keys."""
    (line,) = re.findall(rb"^RW\S+$", public.read_bytes(), re.MULTILINE)
    return base64.b64decode(line)[2:10].hex()


def ecdsa(message: bytes, key: Path) -> bytes:
    """With SHA-512. Signing again gives other bytes: a part of them is random."""
    return _run("openssl", "dgst", "-sha512", "-sign", key, message=message)


def ecdsa_key_id(key: Path) -> bytes:
    public = _run("openssl", "pkey", "-in", key, "-pubout", "-outform", "DER")
    return hashlib.sha512(public[-POINT:]).digest()[:KEY_ID]


def _run(*command, message: bytes = b"") -> bytes:
    answer = subprocess.run([*map(str, command)], input=message, capture_output=True)
    if answer.returncode != 0:
        raise SystemExit(f"{command[0]}: {answer.stderr.decode().strip()}")
    return answer.stdout
