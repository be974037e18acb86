# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment happens in: namespaces, links, and the processes inside them."""
