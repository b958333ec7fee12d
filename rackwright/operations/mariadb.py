"""One application's database in MariaDB, and no other users in the server than declared ones of its socket."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.mariadb import DatabaseAccount, DatabaseServer, MariadbServer
from rackwright.plan.changes import MASK, Change, record

ROOT = DatabaseAccount("root", "localhost")
_TEST = "test"

# Statements come by stdin, and of the password only its hash.
_RUN = """\
out=$(timeout 60 mariadb --no-defaults --batch 2>&1) || { echo "mariadb: $out" >&2; exit 1; }
"""


@dataclass(frozen=True)
class Statement:
    """One difference and the SQL that removes it."""

    target: str
    before: str | None
    after: str | None
    sql: str


def password_hash(password: str) -> str:
    """mysql_native_password's hash: of it alone the server checks a login."""
    once = hashlib.sha1(password.encode(), usedforsecurity=False).digest()
    return "*" + hashlib.sha1(once, usedforsecurity=False).hexdigest().upper()


def statements(
    there: DatabaseServer, database: str, user: str, proof: str, hosts: tuple[str, ...] = ("localhost",)
) -> list[Statement]:
    """All of them. `proof` is the hash of the user's password; `hosts` is where the user connects from."""
    accounts = [DatabaseAccount(user, host) for host in hosts]
    return [
        *_database(there, database),
        *(one for account in accounts for one in _account(there, account, proof)),
        *(one for account in accounts for one in _rights(there, account, database)),
        *_drop_other_accounts(there, user, accounts),
    ]


def _database(there: DatabaseServer, database: str) -> Iterator[Statement]:
    if database not in there.databases:
        yield Statement(f"database {database}", None, "empty", f"CREATE DATABASE {_name(database)};")
    if there.databases.get(_TEST) == 0:
        yield Statement(f"database {_TEST}", "empty", None, f"DROP DATABASE {_name(_TEST)};")


def _account(there: DatabaseServer, account: DatabaseAccount, proof: str) -> Iterator[Statement]:
    how = f"IDENTIFIED VIA mysql_native_password USING {_text(proof)}"
    target = f"database user {account}"
    if account not in there.plugins:
        yield Statement(target, None, f"password {MASK}", f"CREATE USER {_who(account)} {how};")
    elif (
        there.plugins[account] != "mysql_native_password"
        or there.proofs.get(account) != hashlib.sha256(proof.encode()).hexdigest()
    ):
        yield Statement(
            target, there.plugins[account], f"password {MASK}", f"ALTER USER {_who(account)} {how};"
        )


def _rights(there: DatabaseServer, account: DatabaseAccount, database: str) -> Iterator[Statement]:
    rights = {scope: held for scope, held in there.rights.get(account, {}).items() if held}
    if set(rights) == {database} and {"CREATE", "DROP", "SELECT", "TRIGGER"} <= rights[database]:
        return
    revoke = f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {_who(account)}; " if set(rights) - {database} else ""
    yield Statement(
        f"rights of database user {account}",
        ", ".join(sorted(rights)) or None,
        f"all on {database}",
        f"{revoke}GRANT ALL PRIVILEGES ON {_name(database)}.* TO {_who(account)};",
    )


def _drop_other_accounts(
    there: DatabaseServer, user: str, ours: list[DatabaseAccount]
) -> Iterator[Statement]:
    """root over the socket alone; no anonymous users; ours and root from nowhere else."""
    if there.plugins.get(ROOT, "unix_socket") != "unix_socket":
        sql = f"ALTER USER {_who(ROOT)} IDENTIFIED VIA unix_socket;"
        yield Statement(f"database user {ROOT}", there.plugins[ROOT], "unix_socket", sql)
    for account in sorted(there.plugins):
        if account.user == "" or (account.user in ("root", user) and account not in (ROOT, *ours)):
            sql = f"DROP USER {_who(account)};"
            yield Statement(f"database user {account}", there.plugins[account], None, sql)


def socket_user_statements(there: DatabaseServer, user: str, rights: frozenset[str]) -> list[Statement]:
    """What makes a Unix user the database's too, with these rights on the server and on no database."""
    account = DatabaseAccount(user, "localhost")
    found = [
        Statement(f"database user {other}", there.plugins[other], None, f"DROP USER {_who(other)};")
        for other in sorted(there.plugins)
        if other.user == user and other != account
    ]
    plugin, how = there.plugins.get(account), "IDENTIFIED VIA unix_socket"
    if plugin != "unix_socket":
        verb = "CREATE" if plugin is None else "ALTER"
        sql = f"{verb} USER {_who(account)} {how};"
        found.append(Statement(f"database user {account}", plugin, "unix_socket", sql))
    held = {scope: names for scope, names in there.rights.get(account, {}).items() if names}
    if held != {"*": rights}:
        wanted = ", ".join(sorted(rights))
        revoke = f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {_who(account)}; " if held else ""
        before = ", ".join(f"{scope}: {', '.join(sorted(names))}" for scope, names in sorted(held.items()))
        sql = f"{revoke}GRANT {wanted} ON *.* TO {_who(account)};"
        found.append(Statement(f"rights of database user {account}", before or None, f"*: {wanted}", sql))
    return found


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _name(value: str) -> str:
    return "`" + value.replace("`", "``") + "`"


def _who(account: DatabaseAccount) -> str:
    return f"{_text(account.user)}@{_text(account.host)}"


@operation()
def database(
    database: str, user: str, password: str, hosts: tuple[str, ...] = ("localhost",)
) -> Generator[StringCommand, None, None]:
    """A database and a user that may do all in it and nothing outside; no other way in.

    + password: known to the server by its hash, which is all that is sent
    + hosts: localhost and addresses that the user connects from
    """
    there = _server()
    if not password and not site_of().offline:
        raise OperationError(f"the password of database user {user} is empty")
    to_do = statements(there, database, user, password_hash(password), hosts)
    yield from _run(to_do, f"database {database} is as declared")


@operation()
def socket_user(user: str, rights: tuple[str, ...]) -> Generator[StringCommand, None, None]:
    """A Unix user that the database knows over its socket, without a password, with these rights and no others.

    + rights: on the server, as information_schema.user_privileges names them, e.g. PROCESS
    """
    to_do = socket_user_statements(_server(), user, frozenset(rights))
    yield from _run(to_do, f"database user {user} is as declared")


def _server() -> DatabaseServer:
    there: DatabaseServer | None = host.get_fact(MariadbServer)
    return there or DatabaseServer()


def _run(to_do: list[Statement], as_declared: str) -> Generator[StringCommand, None, None]:
    if not to_do:
        host.noop(as_declared)
        return
    for statement in to_do:
        record(
            Change(
                "database",
                statement.target,
                statement.before,
                statement.after,
                disruptive=statement.after is None,
            )
        )
    yield StringCommand(_RUN, _stdin="\n".join(statement.sql for statement in to_do) + "\n")
