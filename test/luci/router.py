# SPDX-License-Identifier: GPL-2.0-or-later
"""A router as its ubus shows it: the daemon's answers are recorded, the rest is simulated."""

import copy
import json
import time
from pathlib import Path

from acl import Acl

FIXTURES = Path(__file__).resolve().parent / "fixtures"

# What uhttpd answers for a call that does not get to an object.
NO_OBJECT = (-32000, "Object not found")
NO_METHOD = (-32601, "Method not found")
DENIED = (-32002, "Access denied")
# rpcd's own refusal.
PERMISSION_DENIED = 6

NETWORK = {
    "loopback": {"type": "interface", "device": "lo", "proto": "static"},
    "lan": {"type": "interface", "device": "br-lan", "proto": "static"},
    "guest": {"type": "interface", "device": "wlan1", "proto": "static"},
    "wan": {"type": "interface", "device": "eth1", "proto": "dhcp"},
}


def pemi_config(enabled: str) -> dict:
    """As the package ships it."""
    return {
        "main": {"type": "pemi", "enabled": enabled, "network": ["lan"]},
        "sidekick": {"type": "sidekick", "enabled": "0", "port": "5103", "interval": "adaptive"},
    }


class Refused(Exception):
    """Instead of an answer: a code of ubus, or a pair as above."""


class Router:
    """In one state; `calls` has (time, object, method, arguments, size of the answer)."""

    def __init__(self, state: str, config: dict | None = None):
        fixture = STATES[state].get("fixture", state)
        self.options = STATES[state]
        self.acl = Acl("read") if self.options.get("readonly") else Acl("read", "write")
        recorded = json.loads((FIXTURES / f"{fixture}.json").read_text()) if fixture else None
        self.frames, self.history = (
            (recorded["frames"], recorded["history"]) if recorded else ([], [])
        )
        self.started = time.time()
        self.calls: list[tuple] = []
        on = self.options.get("running", True)
        self.service = {"start": 95, "stop": 10, "enabled": on, "running": on}
        defaults = {"type": "defaults", "flow_offloading": self.options.get("offloading", "0")}
        self.committed = {
            "pemi": copy.deepcopy(config)
            or pemi_config(
                self.options.get("enabled", "1" if on or self.options.get("crashed") else "0")
            ),
            "firewall": {"cfg01e63d": defaults},
            "network": copy.deepcopy(NETWORK),
        }
        self.staged: dict[str, list] = {}
        self.uci = copy.deepcopy(self.committed)

    # What the daemon says.

    def pemi(self, method: str, arguments: dict) -> dict:
        if "refusal" in self.options:
            raise Refused(self.options["refusal"])
        if not self.service["running"] or not self.frames:
            raise Refused(NO_OBJECT)
        elapsed = int(time.time() - self.started)
        frame = self.frames[min(elapsed, len(self.frames) - 1)]
        if method == "status":
            return frame["status"] | self.options.get("status", {})
        if method == "flows":
            flows = frame["flows"][: arguments.get("limit", 20)]
            # The recordings are older than that, and had nothing but QUIC.
            spoken = {} if self.options.get("old") else {"protocol": "QUIC"}
            return {"flows": [{**flow, **spoken} for flow in flows]}
        if method == "history":
            return {"history": self.samples(elapsed, **arguments)}
        if method == "clients" and not self.options.get("old"):
            return self.clients(**arguments)
        if method == "benefit" and not self.options.get("old"):
            return self.options.get("benefit", {"networks": []})
        if method == "trend" and not self.options.get("old"):
            return self.trend(**arguments)
        raise Refused(NO_METHOD)

    def trend(self, span: str = "day", limit: int = 168, skip: int = 0, **_) -> dict:
        """Busy by day, and off for some hours of yesterday."""
        seconds, most = {"day": (600, 144), "week": (3600, 168)}[span]
        now = int(time.time())
        newest = now - now % seconds
        parts = []
        for at in range(newest - (most - 1) * seconds, newest + seconds, seconds):
            busy = max(0, 12 - abs(at // 3600 % 24 - 19)) * seconds // 60
            if not 20 * 3600 < now - at < 23 * 3600:
                losses = [busy * 3, busy * 3 - busy // 9, busy // 5]
                parts.append([at, seconds, *losses, busy * 5_000_000, busy * 500_000])
        parts = self.options.get("trend", parts)
        end = max(0, len(parts) - skip)
        shown = parts[max(0, end - limit) : end]
        return {"now": now, "part_s": seconds, "total": len(parts), "parts": shown}

    def clients(self, limit: int = 20, skip: int = 0, **_) -> dict:
        found = self.options.get("clients", CLIENTS)
        answer = {"helping": True, "radio": "works", **self.options.get("radio", {})}
        return {"clients": found[skip : skip + limit], "total": len(found), **answer}

    def samples(self, elapsed: int, seconds: int = 600, skip: int = 0, **_) -> list[dict]:
        """The newest is of now; those of the time since the start follow in turn."""
        if self.options.get("old"):
            skip = 0  # came later
        ages = range(skip + seconds - 1, skip - 1, -1)
        last = len(self.history) - 1
        found = []
        for age in ages:
            at = last - age + elapsed
            if at < 0 or not self.history:
                continue
            t = int(self.started) + elapsed - age
            found.append({**self.history[at % (last + 1)], "t": t})
        return found

    # What the rest of the router says.

    def init(self, action: str) -> dict:
        """The init script, by rpcd's `file` `exec`."""
        if action in ("enable", "disable"):
            self.service["enabled"] = action == "enable"
        else:
            self.reload(action != "stop")
        return {"code": 0}

    def reload(self, wanted: bool = True) -> None:
        self.service["running"] = wanted and self.committed["pemi"]["main"].get("enabled") == "1"
        if self.service["running"] and not self.frames:
            idle = json.loads((FIXTURES / "idle.json").read_text())
            self.frames, self.history = idle["frames"], idle["history"]

    def config(self, method: str, arguments: dict) -> dict:
        if method == "changes":
            return {"changes": self.staged}
        if method == "get":
            return self.values(**arguments)
        if self.options.get("readonly"):
            raise Refused(DENIED)
        if method == "apply" and not self.staged:
            raise Refused(5)
        if method in ("apply", "confirm", "revert"):
            if method == "apply":
                self.committed = copy.deepcopy(self.uci)
                self.staged = {}
                self.reload()
            return {}
        name, section = arguments["config"], arguments.get("section")
        sections = self.uci[name]
        if method == "add":
            section = arguments.get("name") or f"cfg{len(sections):06x}"
            sections[section] = {"type": arguments["type"], **arguments.get("values", {})}
        elif method == "set":
            sections[section].update(arguments["values"])
        elif method == "delete":
            for option in arguments.get("options", [arguments.get("option")]):
                sections[section].pop(option, None)
        self.staged.setdefault(name, []).append([method, section, arguments.get("values")])
        return {"section": section}

    def values(self, config: str, section: str | None = None, **_) -> dict:
        if config not in self.uci:
            raise Refused(4)
        values = {}
        for index, (name, options) in enumerate(self.uci[config].items()):
            kept = {key: value for key, value in options.items() if key != "type"}
            described = {".name": name, ".type": options["type"], ".index": index}
            described[".anonymous"] = name.startswith("cfg")
            values[name] = {**described, **kept}
        return {"values": values if section is None else values[section]}

    def answer(self, name: str, method: str, arguments: dict) -> dict:
        if name == "pemi":
            return self.pemi(method, arguments)
        if name == "uci":
            if self.options.get("stranger"):
                raise Refused(DENIED)
            return self.config(method, arguments)
        if self.options.get("stranger") and name == "file":
            raise Refused(DENIED)
        if not self.acl.allows(name, method, arguments):
            raise Refused(PERMISSION_DENIED if name in ("file", "rc") else DENIED)
        if (name, method) == ("rc", "list"):
            return {} if self.options.get("hurried") else {"pemi": dict(self.service)}
        if (name, method) == ("file", "exec"):
            return self.init(*arguments["params"])
        if (name, method) == ("file", "stat"):
            if self.options.get("noqueue"):
                raise Refused(4)
            return {"path": arguments["path"], "size": 0, "type": "file"}
        if (name, method) == ("luci-rpc", "getHostHints"):
            address = self.frames[0]["flows"][0]["client"] if self.running_flows() else ""
            return {
                "02:00:00:00:00:01": {
                    "ipaddrs": [address.rsplit(":", 1)[0]],
                    "ip6addrs": [],
                    "name": "annas-phone",
                }
            }
        raise Refused(NO_OBJECT)

    def running_flows(self) -> bool:
        return bool(self.frames and self.frames[0]["flows"])

    def call(self, message: dict) -> dict:
        _, name, method, arguments = message["params"]
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = [0, self.answer(name, method, arguments)]
        except Refused as refused:
            code = refused.args[0]
            if isinstance(code, int):
                reply["result"] = [code]
            else:
                reply["error"] = {"code": code[0], "message": code[1]}
        size = len(json.dumps(reply))
        self.calls.append((time.monotonic(), name, method, arguments, size))
        return reply


# After a reset, and with more than fits into it.
HOUR = {"seconds": 130, "inferred": 1301, "repaired": 1284, "beyond": 5}

SIDEKICK = {
    "enabled": True,
    "sessions": 1234,
    "quacks": 98765,
    "quack_bytes": 6_024_665,
    "packets": 197_530,
    "losses": 7111,
    "late": 12,
    "refused": 3,
}

# What a daemon answered in the guest of test/wifi, of a station that was sent a stream.
STATION = json.loads((FIXTURES / "clients.json").read_text())["clients"][0]


def station(number: int, state: str, **more) -> dict:
    """The same with another address, and in another state than the guest's ever was."""
    own = {"mac": f"02:00:00:00:01:{number:02x}", "addresses": [f"10.0.0.{number}"]}
    hour = {"sent": 20_000, "lost": number, "lost_per_mille": number / 20, "retries_percent": 3.4}
    return {**STATION, **own, "hour": hour, "state": state, **more}


CLIENTS = [
    STATION,
    station(
        20,
        "helping",
        name="tablet",
        helped={**STATION["helped"], "flows": 1, "repaired_minute": 53},
    ),
    station(10, "helping", counts="at most", queue={"packets": 7, "drops": 1234}),
    station(
        *(0, "clean"),
        **{"name": "laptop", "lost_minute": 0, "clean_s": 10_900, "clean_sent": 1_234_567},
        curve=[[100_000, 0]] * 12,
        gate="closed",
    ),
    station(1, "untold", counts="nothing"),
    station(2, "unbelieved", counts="attempts"),
    station(3, "left", connected=False, left_s=725, signal_dbm=None),
    {
        "name": None,
        "addresses": ["10.0.0.77"],
        "connected": True,
        "helped": {"flows": 2, "repaired": 7, "copies": 9, "repaired_minute": 1},
        "state": "elsewhere",
        "sentence": "on no radio of this router: its losses are inferred",
    },
]
NOBODY = {"clients": [], "radio": {"radio": "no access point"}}

BENEFIT = {
    "device": "br-lan",
    "verdict": "helps",
    "ratio": 1.804,
    "interval": [1.512, 2.196],
    "helped": {"downloads": 128, "stalled": 3},
    "alone": {"downloads": 14, "stalled": 9},
    "stalled_percent": -61.9,
    "stalled_interval": [-81.3, -36.1],
    "back_s": None,
}
STANDS_BACK = "br-guest: Help is off: with it downloads were 0.61 times as fast (0.51 to 0.99; " + (
    "128 helped, 14 left alone). It is tried again in 23 h."
)
STATES = {
    "running": {},
    "idle": NOBODY,
    "noquic": {"clients": [], "radio": {"radio": "no radio"}},
    "many": {"clients": [station(number, "losing") for number in range(23)]},
    "errors": {},
    "readonly": {"fixture": "running", "readonly": True},
    "off": {"fixture": None, "running": False},
    "crashed": {"fixture": None, "running": False, "crashed": True},
    "noqueue": {"fixture": None, "running": False, "crashed": True, "noqueue": True},
    "denied": {"fixture": None, "refusal": DENIED, "stranger": True},
    "busy": {"fixture": None, "refusal": 7},
    "older": {"old": True},
    "ancient": {"fixture": None, "refusal": NO_METHOD},
    "offloading": {"fixture": "running", "offloading": "1"},
    "reset": {"fixture": "running", "status": {"uptime_s": 90061, "hour": HOUR}},
    "begun": {"fixture": "running", "status": {"hour": dict.fromkeys(HOUR, 0)}},
    # Not recorded: a lab's downloads do not ask for quACKs.
    "sidekick": {"fixture": "running", "status": {"sidekick": SIDEKICK}},
    "helps": {"fixture": "running", "benefit": {"networks": [BENEFIT]}},
    "stands": {
        "fixture": "running",
        "status": {"errors": [STANDS_BACK]},
        "benefit": {
            "networks": [
                BENEFIT,
                BENEFIT
                | {"device": "br-guest", "verdict": "stands back", "ratio": 0.612}
                | {"interval": [0.51, 0.994], "back_s": 80000},
                BENEFIT | {"device": "br-iot", "verdict": "unknown", "interval": None},
            ]
        },
    },
    # The only network that there is.
    "back": {
        "fixture": "idle",
        "status": {"errors": [STANDS_BACK.replace("br-guest", "br-lan")]},
        "benefit": {
            "networks": [
                BENEFIT
                | {"verdict": "stands back", "ratio": 0.612, "interval": [0.51, 0.994]}
                | {"back_s": 80000}
            ]
        },
    },
    # Switched off, with option radio 'always'.
    "meter": {
        "fixture": "idle",
        "status": {"helping": False},
        "radio": {"helping": False},
        "enabled": "0",
    },
    # rpcd has ended the init script that it asked.
    "hurried": {"fixture": "running", "hurried": True},
    "new": {"fixture": "running", "trend": []},
    "full": {
        "fixture": "running",
        "status": {"cache": {"bytes": 4_190_000, "limit": 4_194_304}}
        | {"concealed": {"gaps": 9, "held": 1234, "late": 152, "now": 0}}
        | {"resent": {"packets": 1234, "bytes": 1_500_000, "limited": 2231, "errors": 0}},
    },
    "slow": {
        "fixture": "running",
        "status": {"queues": [{"packets": 99_000, "missed": 1234}]},
    },
    "lookaway": {"fixture": "running", "clients": [], "radio": {"radio": "off"}},
    "bridged": {"fixture": "running", "status": {"mode": "bridged"}},
}
