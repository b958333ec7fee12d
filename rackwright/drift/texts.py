"""The files of an installed drift check, as text."""

from __future__ import annotations

import io

import paramiko

from rackwright.drift import paths
from rackwright.drift.declaration import Declaration
from rackwright.model.cluster import Cluster
from rackwright.render import render
from rackwright.secrets.store import Secret


def public_key(private: Secret) -> str:
    """The public half of the checker's key."""
    key = paramiko.Ed25519Key(file_obj=io.StringIO(private.reveal()))
    return f"{key.get_name()} {key.get_base64()}"


def authorized_keys(cluster: Cluster, key: str) -> str:
    """What the key may run on a node: its check."""
    return render(
        "drift/authorized_keys.j2",
        cluster=cluster.name,
        key=key,
        program=paths.PROGRAM,
        user=paths.USER,
        word=paths.WORD,
    )


def sudoers() -> str:
    """The only program that the user may run as root on a node."""
    return render("drift/sudoers.j2", user=paths.USER, program=paths.PROGRAM)


def node_service(declared: Declaration) -> str:
    """Pull mode's service."""
    return render(
        "drift/node.service.j2",
        program=paths.PROGRAM,
        home=paths.HOME,
        timeout_seconds=min(declared.every_seconds, 600),
    )


def node_timer(declared: Declaration) -> str:
    """Pull mode's timer."""
    return _timer(declared, "Checks this node for drift (rackwright)")


def check_service(cluster: Cluster, declared: Declaration) -> str:
    """Push mode's service, on the checker."""
    return render(
        "drift/check.service.j2",
        cluster=cluster.name,
        user=paths.USER,
        python=declared.python,
        folder=paths.check_folder(cluster.name),
        state=paths.state_of(cluster.name),
        timeout_seconds=max(600, declared.every_seconds),
    )


def check_timer(cluster: Cluster, declared: Declaration) -> str:
    """Push mode's timer."""
    return _timer(declared, f"Checks the nodes of {cluster.name} for drift (rackwright)")


def _timer(declared: Declaration, about: str) -> str:
    return render(
        "drift/timer.j2", about=about, calendar=declared.calendar, delay_seconds=declared.delay_seconds
    )
