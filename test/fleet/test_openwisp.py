# SPDX-License-Identifier: GPL-2.0-or-later
"""The template for OpenWISP: what it sets are options of ours, with values that are allowed."""

import json
import subprocess
from pathlib import Path

from routers import FLEET, ROOT

PEMI = ROOT / "target/debug/pemi"


def test_the_daemon_takes_what_the_template_sets(tmp_path: Path):
    template = json.loads((FLEET / "openwisp.json").read_text())
    (section,) = template["pemi"]
    assert (section.pop("config_name"), section.pop("config_value")) == ("pemi", "main")
    for enabled, percent in (("0", "5"), ("1", "50")):
        filled = json.dumps(section).replace("{{ help_enabled }}", enabled)
        config = tmp_path / "config.json"
        config.write_text(filled.replace("{{ help_control_percent }}", percent))
        command = [PEMI, "check", "--config", config]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
