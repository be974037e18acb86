# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures, tables and pages of what was measured, and the line of progress."""
