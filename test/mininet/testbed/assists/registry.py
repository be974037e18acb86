# SPDX-License-Identifier: GPL-2.0-or-later
"""All assists that there are, in the order of `run.py --help`."""

from __future__ import annotations

from .assist import Assist
from .fec import Fec
from .off import Off
from .pemi import Pemi
from .pep import Pep
from .sidekick import Sidekick

ASSISTS: tuple[type[Assist], ...] = (Off, Pemi, Pep, Fec, Sidekick)
