# SPDX-License-Identifier: GPL-2.0-or-later
"""The applications whose traffic crosses the links."""
