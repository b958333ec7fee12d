"""Databases, accounts and rights of a MariaDB server; read as root over the socket."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from pyinfra.api.facts import FactBase


class DatabaseAccount(NamedTuple):
    """A user as MariaDB knows them: a name, and where they come from."""

    user: str
    host: str

    def __str__(self) -> str:
        return f"{self.user or '(anonymous)'}@{self.host}"


@dataclass(frozen=True)
class DatabaseServer:
    """Databases with their number of tables; accounts with what they prove themselves by."""

    databases: dict[str, int] = field(default_factory=dict)
    plugins: dict[DatabaseAccount, str] = field(default_factory=dict)
    """`unix_socket`, `mysql_native_password`, or several joined by ` or `."""
    proofs: dict[DatabaseAccount, str] = field(default_factory=dict)
    """SHA-256 of the stored hash, so that the hash itself stays where it is."""
    rights: dict[DatabaseAccount, dict[str, frozenset[str]]] = field(default_factory=dict)
    """By database; `*` stands for all of them."""


# One statement, so that the answer is whole or missing. Tabs cannot occur in what it prints.
_SQL = """\
SELECT 'database', s.schema_name, count(t.table_name), '' FROM information_schema.schemata s \
LEFT JOIN information_schema.tables t ON t.table_schema = s.schema_name GROUP BY s.schema_name \
UNION ALL SELECT 'account', User, Host, concat_ws(' or ', json_value(Priv, '$.plugin'), \
json_value(Priv, '$.auth_or[0].plugin'), json_value(Priv, '$.auth_or[1].plugin'), \
json_value(Priv, '$.auth_or[2].plugin')) FROM mysql.global_priv \
WHERE coalesce(json_value(Priv, '$.is_role'), 0) = 0 \
UNION ALL SELECT 'proof', User, Host, sha2(coalesce(json_value(Priv, '$.authentication_string'), ''), 256) \
FROM mysql.global_priv \
UNION ALL SELECT 'global', grantee, privilege_type, '' FROM information_schema.user_privileges \
UNION ALL SELECT 'schema', grantee, privilege_type, table_schema FROM information_schema.schema_privileges \
UNION ALL SELECT 'complete', '', '', ''"""


class MariadbServer(FactBase[DatabaseServer | None]):
    """The server, or None where it is not installed, not running or does not let root in."""

    def command(self) -> str:
        """Root over the socket; the client reads no file of the caller's home."""
        return f'timeout 30 mariadb --no-defaults --batch --skip-column-names -e "{_escaped(_SQL)}" 2>/dev/null; :'

    def process(self, output: Iterable[str]) -> DatabaseServer | None:
        """See parse_server."""
        return parse_server(output)

    @staticmethod
    def default() -> DatabaseServer | None:
        """Nothing is known."""
        return None


def _escaped(sql: str) -> str:
    return sql.replace("$", "\\$")  # inside double quotes of the shell


def parse_server(lines: Iterable[str]) -> DatabaseServer | None:
    """Read the fact's rows; None where they are not complete."""
    server, complete = DatabaseServer(), False
    for line in lines:
        kind, *cells = line.rstrip("\n").split("\t")
        if kind == "complete":
            complete = True
        elif len(cells) == 3:
            _take(server, kind, *cells)
    return server if complete else None


def _take(server: DatabaseServer, kind: str, first: str, second: str, third: str) -> None:
    if kind == "database":
        server.databases[first] = int(second)
    elif kind == "account":
        server.plugins[DatabaseAccount(first, second)] = " or ".join(dict.fromkeys(third.split(" or ")))
    elif kind == "proof":
        server.proofs[DatabaseAccount(first, second)] = third
    elif kind in ("global", "schema"):
        account = _grantee(first)
        scope = "*" if kind == "global" else third.replace("\\_", "_")
        rights = server.rights.setdefault(account, {})
        if second != "USAGE":
            rights[scope] = rights.get(scope, frozenset()) | {second}


def _grantee(text: str) -> DatabaseAccount:
    user, _, host = text.partition("'@'")
    return DatabaseAccount(user.strip("'"), host.strip("'"))
