# SPDX-License-Identifier: GPL-2.0-or-later
"""What is tested, in this order. Each scenario gets the lab, leaves the service
running and the links as it found them, and gives the figures that it saw."""

from .bridged import bridged
from .offload import offload
from .repairs import repairs
from .service import flush, install, kill, measure, reload, remove, rights, stop
from .session import long_session, session, session_apk
from .strangers import bridged_strangers, strangers

SCENARIOS = (
    *(session, session_apk, install, rights, strangers, repairs, kill, reload, flush),
    *(offload, measure, bridged, bridged_strangers, stop, remove),
)
# Instead: how `make qemu-session` writes SESSION.md and SESSION-apk.md.
RECORDED = (session_apk, long_session)
