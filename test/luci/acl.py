# SPDX-License-Identifier: GPL-2.0-or-later
"""What the app's ACL grants, as rpcd decides it (its session.c and file.c)."""

import json
from fnmatch import fnmatchcase
from pathlib import Path

FILE = (
    Path(__file__).resolve().parents[2]
    / "luci-app-pemi/root/usr/share/rpcd/acl.d/luci-app-pemi.json"
)


class Acl:
    """The grants of a login that may read, or read and write."""

    def __init__(self, *groups: str):
        access = json.loads(FILE.read_text())["luci-app-pemi"]
        self.scopes: dict[str, list[tuple[str, str]]] = {}
        for group in groups:
            for scope, objects in access[group].items():
                if isinstance(objects, list):  # uci: names of configurations
                    objects = {name: [group] for name in objects}
                self.scopes.setdefault(scope, []).extend(
                    (name, function)
                    for name, functions in objects.items()
                    for function in functions
                )

    def grants(self, scope: str, name: str, function: str) -> bool:
        return any(
            fnmatchcase(name, pattern) and fnmatchcase(function, allowed)
            for pattern, allowed in self.scopes.get(scope, [])
        )

    def allows(self, name: str, method: str, arguments: dict) -> bool:
        """A call on ubus; those of rpcd's object `file` have to be granted twice."""
        if not self.grants("ubus", name, method):
            return False
        if name != "file":
            return True
        if method == "exec":
            command, words = arguments["command"], arguments.get("params", [])
            # The program with any arguments, or this command line.
            lines = [command, " ".join([command, *words])]
            return any(self.grants("file", line, "exec") for line in lines)
        function = {"stat": "list", "lstat": "list", "md5": "read"}.get(method, method)
        return self.grants("file", arguments["path"], function)
