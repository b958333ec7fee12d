"""Checks of the mariadb role."""

from __future__ import annotations

from functools import partial

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.extra_lines import in_place
from rackwright.claims.units import software_runs
from rackwright.facts.mariadb import DatabaseAccount, DatabaseServer, MariadbServer
from rackwright.model.cluster import Node
from rackwright.model.interfaces import ReadsDatabaseServer, UsesAccountingDatabase
from rackwright.osfamily.names import names
from rackwright.roles.mariadb.options import MariadbOptions, clients
from rackwright.roles.mariadb.sizes import bind_address, buffer_pool_mib

_MIB = 1024**2
_ROOT = DatabaseAccount("root", "localhost")

# slurmdbd's own credentials: never in an argument, and in no file but its own.
_LOGIN = """\
set -eu
conf=/etc/slurm/slurmdbd.conf
[ -r "$conf" ] || { echo "there is no $conf" >&2; exit 3; }
exec 2>&1
{ echo '[client]'; sed -n 's/^StorageUser=/user=/p; s/^StoragePass=/password=/p' "$conf"; } |
  timeout 20 mariadb --defaults-file=/dev/stdin --batch --skip-column-names -e 'SHOW DATABASES'
"""


def parse_variables(output: str) -> dict[str, str]:
    """`SHOW GLOBAL VARIABLES` in batch mode: name, tab, value."""
    return dict(line.split("\t", 1) for line in output.splitlines() if "\t" in line)


def parse_listeners(output: str, port: int) -> frozenset[str]:
    """Addresses of `ss -Hltn` that listen on a port."""
    ends = (line.split()[3] for line in output.splitlines() if len(line.split()) >= 4)
    return frozenset(end.rpartition(":")[0].strip("[]") for end in ends if end.endswith(f":{port}"))


def _server(context: CheckContext[MariadbOptions]) -> DatabaseServer:
    server = context.fact(MariadbServer, may_be_empty=True)
    if server is None:
        raise Undetermined("MariaDB does not answer root over its socket")
    return server


def _listens(context: CheckContext[MariadbOptions]) -> str:
    """Where slurmdbd runs on another node, on its network; elsewhere on this machine alone."""
    declared = bind_address(context.cluster, context.node)
    found = parse_listeners(context.output("ss -Hltn"), context.options.port)
    others = sorted(found - {"127.0.0.1", "::1", declared})
    if others:
        fail(f"MariaDB listens on {', '.join(others)}, not on {declared} alone")
    if declared != "127.0.0.1" and declared not in found:
        fail(f"MariaDB does not listen on {declared}, so slurmdbd cannot reach it")
    return f"listens on {', '.join(sorted(found)) or 'its socket only'}"


def _settings(context: CheckContext[MariadbOptions]) -> str:
    options = context.options
    declared = {
        "innodb_buffer_pool_size": buffer_pool_mib(context.node, options) * _MIB,
        "innodb_lock_wait_timeout": options.lock_wait_timeout_seconds,
        "max_allowed_packet": options.max_allowed_packet_mib * _MIB,
    }
    found = parse_variables(
        context.output("mariadb --no-defaults --batch --skip-column-names -e 'SHOW GLOBAL VARIABLES'")
    )
    wrong = []
    for name, value in declared.items():
        if not found.get(name, "").isdigit():
            raise Undetermined(f"MariaDB does not report its {name}")
        # InnoDB rounds its pool up to whole chunks of at most 128 MiB.
        slack = 128 * _MIB if name == "innodb_buffer_pool_size" else 0
        if not value <= int(found[name]) <= value + slack:
            wrong.append(f"{name} is {found[name]}, not {value}")
    if wrong:
        fail("; ".join(wrong))
    return ", ".join(f"{name} {found[name]}" for name in declared)


def _no_other_account(context: CheckContext[MariadbOptions]) -> str:
    server, ours = _server(context), _accounts(context)
    reader = _reader(context)
    others = [
        account
        for account in sorted(server.plugins)
        if account.user == ""
        or (account.user in _declared(context) and account not in (_ROOT, *ours, reader))
    ]
    if others:
        fail(f"{', '.join(map(str, others))} may log in")
    for account in (_ROOT, *((reader,) if reader in server.plugins else ())):
        if server.plugins.get(account) != "unix_socket":
            how = server.plugins.get(account, "nothing")
            fail(f"{account} authenticates by {how}, not by unix_socket alone")
    if server.databases.get("test") == 0:
        fail("there is an empty database test")
    readers = f", {reader} by unix_socket" if reader in server.plugins else ""
    return f"root by unix_socket, {', '.join(map(str, ours))}{readers}, no anonymous users"


def _reader(context: CheckContext[MariadbOptions]) -> DatabaseAccount | None:
    """Of the role that reads the server's figures, where there is one; whether it is there, that role checks itself."""
    reads = context.node.offers(ReadsDatabaseServer)
    return None if reads is None else DatabaseAccount(reads.database_user, "localhost")


def _declared(context: CheckContext[MariadbOptions]) -> frozenset[str]:
    reader = _reader(context)
    return frozenset({"root", context.options.user, *(() if reader is None else (reader.user,))})


def _accounts(context: CheckContext[MariadbOptions]) -> tuple[DatabaseAccount, ...]:
    hosts = clients(context.cluster, context.node)
    return tuple(DatabaseAccount(context.options.user, host) for host in hosts)


def _login(context: CheckContext[MariadbOptions]) -> str:
    database = context.options.database
    result = context.host.run("sh -c %s", _LOGIN)
    if result.rc != 0 and "Access denied" in result.stdout:
        fail("MariaDB refuses the user and password of slurmdbd.conf")
    if result.rc != 0:
        message = (result.stderr.strip() or result.stdout.strip() or "nothing").splitlines()[-1]
        raise Undetermined(f"logging in exited {result.rc}: {message}")
    seen = set(result.stdout.split()) - {"information_schema"}
    if seen != {database}:
        fail(f"slurmdbd's user sees {', '.join(sorted(seen)) or 'no database'}, not {database} alone")
    return f"slurmdbd's credentials reach {database} and nothing else"


def _rights(context: CheckContext[MariadbOptions]) -> str:
    wanted, server = context.options.database, _server(context)
    for account in _accounts(context):
        held = {scope for scope, rights in server.rights.get(account, {}).items() if rights}
        if held != {wanted}:
            fail(f"{account} has rights on {', '.join(sorted(held)) or 'nothing'}, not on {wanted} alone")
    return f"{', '.join(map(str, _accounts(context)))} has rights on {wanted} alone"


def _beside_slurmdbd(node: Node, options: MariadbOptions) -> bool:
    """Its credentials are on this node; elsewhere its own role finds out whether it reaches the database."""
    accounting = node.offers(UsesAccountingDatabase)
    return accounting is None or accounting.uses_database_on(node)


def _extra(context: CheckContext[MariadbOptions]) -> str:
    path = names(context.node.family, "mariadb").paths["conf"]
    return in_place(context, path, context.options.extra.server_cnf)


CHECKS = (
    Check("MariaDB is running", partial(software_runs, software="mariadb"), settle_seconds=20),
    Check("MariaDB listens only for slurmdbd", _listens),
    Check("MariaDB has its declared settings", _settings),
    Check(
        "MariaDB's file has the declared extra lines",
        _extra,
        applies=lambda node, options: bool(options.extra.server_cnf),
    ),
    Check("only root and declared users may log in to MariaDB", _no_other_account),
    Check("slurmdbd's database user has rights only on its database", _rights),
    Check("slurmdbd's database user reaches its database and no other", _login, applies=_beside_slurmdbd),
)
