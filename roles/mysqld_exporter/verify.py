"""Checks of the mysqld_exporter role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.exporters import exporter_checks
from rackwright.claims.files import as_rendered
from rackwright.facts.mariadb import DatabaseAccount, MariadbServer
from rackwright.roles.mysqld_exporter import texts
from rackwright.roles.mysqld_exporter.options import MysqldExporterOptions


def _sees_no_row(context: CheckContext[MysqldExporterOptions]) -> str:
    server = context.fact(MariadbServer, may_be_empty=True)
    if server is None:
        raise Undetermined("MariaDB does not answer root over its socket")
    account = DatabaseAccount(context.options.database_user, "localhost")
    if account not in server.plugins:
        fail(f"MariaDB does not know {account}")
    if server.plugins[account] != "unix_socket":
        fail(f"{account} authenticates by {server.plugins[account]}, not by unix_socket alone")
    held = {scope: names for scope, names in server.rights.get(account, {}).items() if names}
    if held != {"*": frozenset(texts.RIGHTS)}:
        found = "; ".join(f"{', '.join(sorted(names))} on {scope}" for scope, names in sorted(held.items()))
        fail(f"{account} has {found or 'no rights'}, not {', '.join(texts.RIGHTS)} alone")
    return f"{account} has {', '.join(texts.RIGHTS)} alone"


def _login(context: CheckContext[MysqldExporterOptions]) -> str:
    return as_rendered(context, {texts.conf_path(context.options): texts.conf(context.node, context.options)})


CHECKS = (
    *exporter_checks("mysqld_exporter", texts.arguments),
    Check("mysqld_exporter logs in over MariaDB's socket", _login),
    Check("mysqld_exporter can read MariaDB's status but no table", _sees_no_row),
)
