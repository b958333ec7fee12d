"""Commands that dump slurmdbd's database and load it. They run as root over MariaDB's socket, so no password is given.

mariadb-dump(1) of MariaDB 10.11 and 11.8, read 2026-11-26: `--single-transaction` dumps InnoDB tables, as slurmdbd's all
are, as of one moment without locking them; routines are dumped where asked for, triggers always. With
`--add-drop-database` the load replaces the database, tables included that the dump does not have; rights of users
on it stay, since MariaDB keeps them by its name.
"""

from __future__ import annotations

from shlex import join

_CLIENT = ("--no-defaults", "--user=root")
# The limit of one row on the client's side; scripts of jobs may be in the records. The server has its own.
_PACKET = "--max-allowed-packet=1G"


def dump_command(database: str) -> str:
    """Prints the database as SQL."""
    return join(
        [
            "mariadb-dump",
            *_CLIENT,
            _PACKET,
            "--single-transaction",
            "--quick",
            "--routines",
            "--hex-blob",
            "--add-drop-database",
            "--databases",
            database,
        ]
    )


def load_command() -> str:
    """Replaces the database by what it reads."""
    return join(["mariadb", *_CLIENT, _PACKET])


def ready_command() -> str:
    """Succeeds where MariaDB answers root."""
    return join(["mariadb", *_CLIENT, "--execute=SELECT 1"])
