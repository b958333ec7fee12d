"""rackwright secrets: who can read a cluster's secrets, their backup, and their rotation."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rackwright.cli.arguments import AsJson, ClusterFile
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.cli.secrets_rotate import rotate_command
from rackwright.clusterfile.load import load_cluster
from rackwright.engine.new_secrets import needed_secrets
from rackwright.errors import SecretsError
from rackwright.rotation.supplied import is_generated, replace_command
from rackwright.secrets.backup import back_up, restore
from rackwright.secrets.content import Content
from rackwright.secrets.recipients import add_recipient, own_key, remove_recipient
from rackwright.secrets.store import SecretStore, store_of

_VALUE_MAX = 64 * 2**10

secrets_app = typer.Typer(
    help="Show, back up, share and rotate the secrets of a cluster. No command prints a value.",
)
secrets_app.command("rotate")(rotate_command)

Key = Annotated[str, typer.Argument(metavar="KEY", help="An age public key, e.g. age1qyqs...")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The secret's name, e.g. slurmdbd_password.")]


@secrets_app.command("init")
def init_command(
    file: ClusterFile,
    new_secrets: Annotated[
        bool, typer.Option("--new-secrets", help="Make a new store although one existed and is lost.")
    ] = False,
) -> None:
    """Generate the secrets that the cluster's roles need and the store lacks.

    `rackwright apply` does the same. Secrets that nodes have already are never replaced without
    `apply --new-secrets`.
    """
    cluster = load_cluster(file)
    store = store_of(cluster)
    done = store.ensure(needed_secrets(cluster, None, None), new=new_secrets)
    what = f"generated {', '.join(done.names)}" if done.names else "nothing was missing"
    say(f"{store.path}: {what}")


@secrets_app.command("list")
def list_command(file: ClusterFile, as_json: AsJson = False) -> None:
    """List the secrets by name: when each last changed, and whether its rotation is due or unfinished."""
    store = _store(file)
    content = store.content()
    if as_json:
        listed = [_described(content, name) for name in sorted(content.secrets)]
        print_document("secrets", {"cluster": load_cluster(file).name, "secrets": listed})
        return
    for name in sorted(content.secrets):
        notes = [content.changed.get(name, "not known when")]
        if name in content.previous or name in content.pending:
            notes.append("its rotation is unfinished: rackwright secrets rotate " + name)
        if seen := content.seen_by_removed.get(name):
            notes.append(
                f"rotation is due: seen by {len(seen)} removed recipients, {', '.join(sorted(seen))}"
            )
        say(f"{name}: {'; '.join(notes)}")


@secrets_app.command("put")
def put_command(name: Name, file: ClusterFile) -> None:
    """Store a value that another service gave you: typed without echo, or read from standard input.

    One line break at its end is not part of it. `rackwright apply` then puts it on the nodes.
    """
    value = getpass.getpass(f"{name}: ") if sys.stdin.isatty() else sys.stdin.read(_VALUE_MAX + 1)
    value = value.removesuffix("\n").removesuffix("\r")
    if not value or len(value) > _VALUE_MAX:
        raise SecretsError(
            f"The value of {name} is {'empty' if not value else f'longer than {_VALUE_MAX} characters'}.",
            hint=f"give it on standard input: rackwright secrets put {name} {file} < password.txt",
        )
    store = _store(file)
    store.put(name, value)
    say(f"{store.path}: {name} stored")


@secrets_app.command("backup")
def backup_command(
    target: Annotated[Path, typer.Argument(metavar="PATH", help="A new file for the encrypted copy.")],
    file: ClusterFile,
) -> None:
    """Copy the store, encrypted to the same recipients, and decrypt the copy to see that it is whole."""
    count = back_up(_store(file), target)
    say(f"{target}: {count} secrets, decrypted and compared")


@secrets_app.command("restore")
def restore_command(
    source: Annotated[Path, typer.Argument(metavar="PATH", help="A file of `rackwright secrets backup`.")],
    file: ClusterFile,
) -> None:
    """Put a backup in the place of a store that is gone."""
    store = _store(file)
    count = restore(store, source)
    say(f"{store.path}: {count} secrets restored")


@secrets_app.command("trust")
def trust_command(file: ClusterFile) -> None:
    """Use the store that is in place, although its secrets are not those that you used before.

    For the day after a colleague has regenerated all secrets.
    """
    store = _store(file)
    store.trust()
    say(f"{store.path}: used from now on")


@secrets_app.command("show-recipients")
def show_recipients_command(file: ClusterFile, as_json: AsJson = False) -> None:
    """List the public keys that can decrypt the store, your own marked."""
    store = _store(file)
    mine = own_key()
    keys = store.content().recipients
    if as_json:
        listed = [
            {"key": key, "own": key == mine, "decrypts": key in keys}
            for key in sorted(keys | store.file.team())
        ]
        print_document("secrets.recipients", {"cluster": load_cluster(file).name, "recipients": listed})
        return
    for key in sorted(keys):
        say(f"{key} (this user)" if key == mine else key)
    for key in sorted(store.file.team() - keys):
        say(f"{key} (from the next apply on)")


@secrets_app.command("add-recipient")
def add_recipient_command(key: Key, file: ClusterFile) -> None:
    """Let the holder of this key read all secrets of the cluster."""
    store = _store(file)
    add_recipient(store, key)
    say(f"{store.path}: encrypted to {key} as well")


@secrets_app.command("remove-recipient")
def remove_recipient_command(key: Key, file: ClusterFile) -> None:
    """Encrypt the store to everyone but this key, and name the secrets that its holder has seen."""
    store = _store(file)
    seen = remove_recipient(store, key)
    say(f"{store.path}: no longer encrypted to {key}")
    cluster = load_cluster(file)
    generated = [name for name in seen if is_generated(cluster, name)]
    supplied = [name for name in seen if name not in generated]
    say("Its holder has seen these secrets, and may have kept them.")
    for what, names in (
        ("Rotate each of those that rackwright generates:", generated),
        ("Change the others at the services that gave them to you, store each, and apply:", supplied),
    ):
        if names:
            say("\n".join([what, *(f"  {replace_command(cluster, name)}" for name in names)]))


def _described(content: Content, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "changed": content.changed.get(name),
        "rotation_unfinished": name in content.previous or name in content.pending,
        "seen_by_removed": sorted(content.seen_by_removed.get(name, ())),
    }


def _store(file: Path) -> SecretStore:
    return store_of(load_cluster(file))
