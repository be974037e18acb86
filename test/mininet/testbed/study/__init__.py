# SPDX-License-Identifier: GPL-2.0-or-later
"""Published experiments: many runs, kept as they come, and a report of them.

`plan` reads an experiment's file, `store` keeps finished runs, `carry` does those
that are missing, `figures` makes tables of them, `plots` draws and `report` writes.
"""
