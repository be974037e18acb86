# SPDX-License-Identifier: GPL-2.0-or-later
"""The Wi-Fi testbed: what a guest with the kernel's own 802.11 stack is asked, and what it says.

The applications, the scoring of copies, result files and pages are those of the Mininet testbed.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test/mininet"))
