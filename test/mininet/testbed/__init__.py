# SPDX-License-Identifier: GPL-2.0-or-later
"""The experiment testbed: a client, a router and a server on emulated links."""
