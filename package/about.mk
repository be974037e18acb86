# SPDX-License-Identifier: GPL-2.0-or-later
# What all packages say of the project: both Makefiles include this, package/portable
# reads it, and package/upstream.py copies it.

PKG_VERSION:=0.1.0
PKG_RELEASE:=1
PKG_LICENSE:=GPL-2.0-or-later

# Placeholders until the project has addresses.
PKG_MAINTAINER:=PEMI maintainers <maintainers@pemi.example>
PEMI_URL:=https://pemi.example
PEMI_RELEASES:=https://pemi.example/releases
