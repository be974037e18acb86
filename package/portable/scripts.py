# SPDX-License-Identifier: GPL-2.0-or-later
"""The scripts that come with a package: those that the SDK generates, in our words.

The work is done by /lib/functions.sh on the router: it adds the user, runs the
uci-defaults, and enables and starts the init script, or disables and stops it.
"""

HEAD = "#!/bin/sh\n"
SKIP = '[ "${IPKG_NO_SCRIPT}" = "1" ] && exit 0\n'
FUNCTIONS = """[ -s "${IPKG_INSTROOT}/lib/functions.sh" ] || exit 0
. "${IPKG_INSTROOT}/lib/functions.sh"
"""


def for_opkg(own: str) -> dict[str, str]:
    """By the names in control.tar.gz. The package's `own` is run by default_postinst."""
    found = {
        "postinst": f'{HEAD}{SKIP}{FUNCTIONS}default_postinst "$0" "$@"\n',
        "prerm": f'{HEAD}{FUNCTIONS}default_prerm "$0" "$@"\n',
    }
    if own:
        found["postinst-pkg"] = own
    return found


def for_apk(package: str, own: str) -> dict[str, str]:
    """By apk's names of the moments they are run at."""
    names = f'export root="${{IPKG_INSTROOT}}"\nexport pkgname="{package}"\n'
    install = f"{SKIP}{FUNCTIONS}{names}add_group_and_user\ndefault_postinst\n{own}"
    return {
        "post-install": HEAD + install,
        "post-upgrade": f"{HEAD}export PKG_UPGRADE=1\n{install}",
        "pre-deinstall": f"{HEAD}{FUNCTIONS}{names}default_prerm\n",
    }
