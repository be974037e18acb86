# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens to a router in the middle of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trouble:
    """One thing that happens, by functions of the guest's `run.sh`."""

    about: str
    lines: tuple[str, ...]


# A download of 2 MB has 1,430 packets.
TROUBLES = {
    "kill": Trouble("the daemon is killed, and started 0.5 s later", ("amid 400 dies 0.5",)),
    "hang": Trouble("the daemon stands still for 0.5 s", ("amid 400 hangs 0.5",)),
    "hang-radio": Trouble(
        "its thread that asks the radio does so", ("amid 400 freezes pemi-radio 0.5",)
    ),
    "hang-queue": Trouble(
        "its thread with the packets does so", ("amid 400 freezes pemi-queue-5443 0.5",)
    ),
    "reload": Trouble(
        "it reads its options again, twice", ("amid 400 reads_again", "amid 800 reads_again")
    ),
    "restart": Trouble("an option has changed that takes a new start", ("amid 400 starts_anew",)),
    "reassociate": Trouble("the client associates again", ("amid 400 associates_again",)),
    "leave": Trouble("the client leaves and comes back", ("amid 400 leaves 0.5",)),
    "claim": Trouble(
        "a host of another network claims the client's address", ("amid 400 claims_its_address",)
    ),
    "vanish": Trouble("the access point's interface is replaced", ("amid 400 vanishes 0.5",)),
}
