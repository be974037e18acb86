# SPDX-License-Identifier: GPL-2.0-or-later
"""What helps the flows: nothing, the daemon, and what it is compared with."""
