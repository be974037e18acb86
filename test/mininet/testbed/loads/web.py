# SPDX-License-Identifier: GPL-2.0-or-later
"""Downloads over HTTP: nginx and curl over TCP, quic-go's HTTP/3 server with its own
client, with curl or with a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ..world.process import ExperimentError
from ..world.programs import ROOT
from .apps import App, Place, choose_cc, human_bytes, patience

STACKS = ("tcp", "quicgo", "curl", "chromium", "firefox")
_QUICGO = "http-quicgo"
# What the kernel calls them.
_KERNEL_CCS = {"cubic": "cubic", "newreno": "reno", "bbr": "bbr"}
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
# Browsers, and what starts them.
_BROWSERS = {"chromium": "chromium", "firefox": "firefox-esr"}
_MODULES = Path(__file__).parents[2]
_CURL = Path(__file__).with_name("curl.py")
# Where `make setup` puts libcurl with HTTP/3 (curl.txt).
_LIBCURL = "lib/python3*/site-packages/curl_cffi/_wrapper.abi3.so"
_VENV = ROOT / ".venv"


def http(size: int, cc: str | None, slowest_mbit: float, stack: str) -> App:
    """A download. `slowest_mbit` is the rate of the slowest link."""
    patience_s = patience(size, slowest_mbit)
    common = {
        "name": "http",
        "stack": stack,
        "label": f"HTTP with {stack}, download of {human_bytes(size)}",
        # The program's own message is the better one.
        "timeout_s": patience_s + 10,
        "patience_s": patience_s,
        "bytes": size,
    }
    if stack == "tcp":
        available = _AVAILABLE.read_text().split()
        ccs = [name for name, kernels in _KERNEL_CCS.items() if kernels in available]
        return Tcp(
            **common,
            cc=choose_cc("the kernel's TCP", ccs, cc),
            programs=(),
            tools=("nginx", "curl", "openssl", "chrt"),
        )
    common |= {"cc": choose_cc("quicgo", ("newreno",), cc), "programs": (_QUICGO,)}
    if stack in _BROWSERS:
        return Browser(**common, tools=("openssl", "unshare", _BROWSERS[stack]))
    if stack == "curl":
        return Curl(**common, tools=("openssl", "chrt"), libraries=(libcurl(),))
    return Quicgo(**common, tools=("openssl",))


def libcurl() -> Path:
    """Where it is, or would be."""
    return next(iter(sorted(_VENV.glob(_LIBCURL))), _VENV / _LIBCURL)


@dataclass(frozen=True, kw_only=True)
class Http(App):
    """What all of them have."""

    patience_s: float


@dataclass(frozen=True, kw_only=True)
class Tcp(Http):
    """nginx and curl, HTTP/1.1 over TLS 1.3."""

    def server(self, place: Place) -> list[str]:
        certificate, key = make_certificate(place.logs)
        root = place.logs / "www"
        root.mkdir()
        with (root / "file").open("wb") as file:
            # A hole takes no room, and on the link it is as random as everything else.
            file.truncate(self.bytes)
        config = place.logs / "nginx.conf"
        config.write_text(nginx_config(place.address, place.logs, certificate, key))
        nginx = real_time(place.rt, ["nginx", "-e", "stderr", "-c", str(config)])
        # A namespace may not change its default, but a route may have one of its own.
        family = "-6" if place.address.startswith("[") else "-4"
        script = (
            'family=$1 cc=$2; shift 2; default=$(ip "$family" route show default) && '
            'ip "$family" route change $default congctl "$cc" && exec "$@"'
        )
        return ["sh", "-c", script, "sh", family, _KERNEL_CCS[self.cc], *nginx]

    def client(self, place: Place) -> list[str]:
        return real_time(
            place.rt,
            [
                *("curl", "--silent", "--show-error", "--fail", "--insecure", "--noproxy", "*"),
                *("--http1.1", "--tlsv1.3", "--max-time", f"{self.patience_s:.0f}"),
                *("--output", "/dev/null", "--write-out", "%{json}"),
                f"https://{place.address}/file",
            ],
        )

    def measured(self, place: Place, output: str) -> dict[str, object]:
        return curl_metrics(json.loads(output), self.bytes)


@dataclass(frozen=True, kw_only=True)
class Quicgo(Http):
    """quic-go's HTTP/3 on both sides."""

    def server(self, place: Place) -> list[str]:
        certificate, key = make_certificate(place.logs)
        files = ("--certificate", str(certificate), "--key", str(key))
        return [*self.role(place, "server", "--listen"), *files, "--cc", self.cc]

    def client(self, place: Place) -> list[str]:
        limits = ("--bytes", str(self.bytes), "--timeout", f"{self.patience_s:.0f}")
        return [*self.role(place, "client", "--connect"), *limits, "--json", str(place.result)]

    def role(self, place: Place, role: str, option: str) -> list[str]:
        """The program as one of its two sides."""
        program = str(place.programs / _QUICGO)
        return [program, role, option, place.address, "--rt", str(place.rt)]


@dataclass(frozen=True, kw_only=True)
class Curl(Quicgo):
    """quic-go's server with curl's library, which speaks QUIC by ngtcp2."""

    def client(self, place: Place) -> list[str]:
        return real_time(place.rt, ["/usr/bin/python3", str(_CURL), *self.asks(place)])

    def asks(self, place: Place) -> list[str]:
        """What the script that calls the library is told."""
        return [
            *("--library", str(self.libraries[0]), "--connect", place.address),
            *("--bytes", str(self.bytes), "--timeout", f"{self.patience_s:.0f}"),
            *("--json", str(place.result)),
        ]


@dataclass(frozen=True, kw_only=True)
class Browser(Quicgo):
    """quic-go's server with a client that nobody here wrote."""

    def client(self, place: Place) -> list[str]:
        certificate, _ = certificate_files(place.logs)
        return [
            # A process namespace of its own, which ends with its first process: none
            # of the browser's can stay behind. Real-time priority is not for a dozen
            # processes that expect to share.
            *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
            *("env", f"PYTHONPATH={_MODULES}", sys.executable, "-m", "testbed.loads.browser"),
            *(self.stack, "--connect", place.address),
            *("--bytes", str(self.bytes), "--timeout", f"{self.patience_s:.0f}"),
            *("--spki", public_key_hash(certificate), "--profile", str(place.logs / "profile")),
            *("--json", str(place.result)),
        ]


def real_time(rt: int, argv: list[str]) -> list[str]:
    """A program that has no such option itself."""
    return ["chrt", "--fifo", str(rt), *argv] if rt else argv


def certificate_files(logs: Path) -> tuple[Path, Path]:
    """The server's certificate and its key."""
    return logs / "certificate.pem", logs / "key.pem"


def make_certificate(logs: Path) -> tuple[Path, Path]:
    """One for this run."""
    certificate, key = certificate_files(logs)
    _openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-subj", "/CN=pemi-test", "-days", "2"),
        *("-keyout", str(key), "-out", str(certificate)),
    )
    return certificate, key


def public_key_hash(certificate: Path) -> str:
    """By which Chromium is told to trust it."""
    key = _openssl("x509", "-in", str(certificate), "-noout", "-pubkey")
    der = _openssl("pkey", "-pubin", "-outform", "der", given=key)
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def _openssl(*arguments: str, given: bytes = b"") -> bytes:
    done = subprocess.run(["openssl", *arguments], input=given, capture_output=True, timeout=30)
    if done.returncode != 0:
        raise ExperimentError(f"openssl {arguments[0]}: {done.stderr.decode().strip()}")
    return done.stdout


def nginx_config(address: str, logs: Path, certificate: Path, key: Path) -> str:
    """One process that has all its files in `logs`."""
    temporary = "\n".join(
        f'  {name}_temp_path "{logs}/nginx-{name}";'
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""
daemon off;
master_process off;
pid "{logs}/nginx.pid";
error_log stderr;
events {{}}
http {{
  access_log off;
{temporary}
  server {{
    listen {address} ssl;
    ssl_certificate "{certificate}";
    ssl_certificate_key "{key}";
    ssl_protocols TLSv1.3;
    root "{logs}/www";
  }}
}}
"""


def curl_metrics(told: dict, size: int) -> dict[str, object]:
    """From curl's own account of a transfer, as the other clients print it."""
    if told["size_download"] != size:
        raise ExperimentError(f"curl got {told['size_download']} of {size} bytes")
    fct_s = told["time_total"]
    return {
        "protocol": f"HTTP/{told['http_version']}",
        "fct_s": fct_s,
        "handshake_s": told["time_appconnect"],
        "goodput_mbps": round(size * 8e-6 / fct_s, 6),
        "complete": True,
    }
