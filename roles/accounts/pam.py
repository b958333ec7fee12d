"""How each package tool's distributions put SSSD into PAM and the name service: a table by tool."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.osfamily.family import Family
from rackwright.osfamily.names import names

_HOME_LINE = "pam_mkhomedir.so umask=0077"


@dataclass(frozen=True)
class Stack:
    """Shell that reads and writes the state of PAM, and what else it takes."""

    read: str
    want: str
    write: str
    profile: bool = False
    """Whether rackwright's profile creates homes, not the distribution's."""
    writes_nsswitch: bool = False
    """Whether the same command writes nsswitch.conf, which then must not be changed by hand."""


def stack(family: Family, *, make_home: bool) -> Stack:
    """PAM of this family, with homes made at login or not."""
    return {"apt": _pam_auth_update, "dnf": _authselect}[family.package_tool](family, make_home=make_home)


def account_file(family: Family) -> str:
    """The file whose account rules sshd, su and sudo include."""
    return names(family, "sssd").paths["account"]


def session_file(family: Family) -> str:
    """The file whose session rules logins include."""
    return names(family, "sssd").paths["session"]


def _pam_auth_update(family: Family, *, make_home: bool) -> Stack:
    """pam-auth-update(8) of Debian 13: --enable and --remove take names of files in /usr/share/pam-configs."""
    update = "DEBIAN_FRONTEND=noninteractive pam-auth-update"
    read = (
        f"! grep -Eq '^account.*pam_sss\\.so' {account_file(family)} || printf 'sss '; "
        f"! grep -Fq '{_HOME_LINE}' {session_file(family)} || printf homes"
    )
    if make_home:
        return Stack(read, "sss homes", f"{update} --enable sss rackwright-home", profile=True)
    write = f"{update} --enable sss && {update} --remove rackwright-home"
    return Stack(read, "sss", write, profile=True)


def _authselect(family: Family, *, make_home: bool) -> Stack:
    """authselect(8) of EL 8 and 9: `check` fails for files that were changed by hand; a select with --force keeps a
    backup of them. Features that the site has turned on stay.
    """
    feature = "with-mkhomedir"
    read = (
        'authselect check >/dev/null 2>&1 && set -- $(authselect current --raw) && [ "$1" = sssd ] && '
        f'case " $* " in *" {feature} "*) echo sssd homes ;; *) echo sssd ;; esac'
    )
    features = (
        f'set -- $(authselect current --raw 2>/dev/null); [ "${{1-}}" = sssd ] || set -- sssd; shift; '
        f'kept=$(for one; do [ "$one" = {feature} ] || echo "$one"; done)'
    )
    if not make_home:
        write = f"{features}; authselect select sssd $kept --force"
        return Stack(read, "sssd", write, writes_nsswitch=True)
    return Stack(
        read,
        "sssd homes",
        f"{features}; authselect select sssd $kept {feature} --force",
        writes_nsswitch=True,
    )
