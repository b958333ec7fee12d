"""User quotas on the filesystem that holds the users' files."""

from __future__ import annotations

from collections.abc import Generator
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.facts.quotas import DEFAULT, Limits, Quotas, UserQuotas, differing
from rackwright.plan.changes import Change, record


@operation()
def user_quotas(path: str, default: Limits, users: dict[int, Limits]) -> Generator[StringCommand, None, None]:
    """Every user of the XFS filesystem has these limits.

    + path: where it is mounted, with user quotas turned on
    + default: of each user that `users` does not name, now and later
    + users: limits by uid
    """
    there: Quotas | None = host.get_fact(UserQuotas, path=path)
    changes = differing(there, default, users)
    if not changes:
        host.noop(f"quotas on {path} are as declared")
        return
    commands = []
    for uid, (before, after) in changes.items():
        who = "every user" if uid == DEFAULT else f"uid {uid}"
        record(Change("setting", f"quota of {who} on {path}", str(before) if there else None, str(after)))
        whom = "-d" if uid == DEFAULT else str(uid)
        limits = f"limit -u bsoft=0 bhard={after.kib}k isoft=0 ihard={after.files} {whom}"
        commands.append(f"xfs_quota -x -c {quote(limits)} {quote(path)}")
    # `xfs_quota` exits 0 where it refuses a limit, so that what it left is read again.
    yield StringCommand(f"sh -ec {quote(chr(10).join((f'mountpoint -q {quote(path)}', *commands)))}")
