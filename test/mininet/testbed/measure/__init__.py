# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run came to, from the logs of its links and programs."""
