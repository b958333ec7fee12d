"""Extra lines of sshd's file, and those that could lock rackwright out."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from rackwright.extra_lines import FIELD, SSHD, ExtraFile, ExtraLines, Problem
from rackwright.model.options import Frozen, RoleOptions

_LOCKS_OUT = frozenset(
    [
        "addressfamily",
        "allowgroups",
        "allowusers",
        "authenticationmethods",
        "chrootdirectory",
        "denygroups",
        "denyusers",
        "forcecommand",
        "include",
        "listenaddress",
        "port",
        "pubkeyacceptedalgorithms",
        "pubkeyacceptedkeytypes",
        "refuseconnection",
        "requiredrsasize",
        "revokedkeys",
        "trustedusercakeys",
    ]
)
"""Keywords of sshd_config(5) that decide who gets in and where."""


class AccessExtra(Frozen):
    """Lines of sshd's file, before its Match blocks."""

    sshd_conf: ExtraLines = Field(
        default=(), description="Of rackwright's file in sshd_config.d, e.g. [ClientAliveInterval 60]."
    )


def extra_problems(extra: AccessExtra, options: type[RoleOptions]) -> Iterator[Problem]:
    """Lines that are not sshd's, set what rackwright sets, or decide who gets in."""
    file = ExtraFile("sshd_conf", "sshd's file", SSHD, ("access/sshd.conf.j2",))
    yield from file.problems(extra.sshd_conf, options)
    for index, line in enumerate(extra.sshd_conf):
        for key in file.syntax.keys(line):
            if file.syntax.plain(key) in _LOCKS_OUT:
                yield (
                    f"{FIELD}.sshd_conf[{index}]",
                    f"{key} decides who gets in, and could lock rackwright out of the nodes.",
                    "remove it",
                )
