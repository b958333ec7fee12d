"""Checks of the nfs_client role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.mounts import checks
from rackwright.claims.nfs import CLIENT_OF_KERBEROS, daemons_run, secured
from rackwright.claims.packages import held_at, installed
from rackwright.claims.units import is_masked, runs
from rackwright.facts.settings import Answer
from rackwright.model.platforms import Capability
from rackwright.mounts import mounted_by
from rackwright.osfamily.names import names
from rackwright.roles.nfs_client import texts
from rackwright.roles.nfs_client.options import NfsClientOptions

Context = CheckContext[NfsClientOptions]
_NEEDS = frozenset({Capability.NETWORK_FILESYSTEMS})


def _runs(context: Context) -> str:
    client = names(context.node.family, "nfs-client")
    return f"{installed(context, client.packages)}; {runs(context, client.unit or '')}"


def _files(context: Context) -> str:
    return as_rendered(context, texts.files(context.cluster, context.node, context.options))


def _masked(context: Context) -> str:
    for unit in texts.MASKED:
        is_masked(context, unit, why="NFSv4 does not need it, and it listens on every address")
    return ", ".join(texts.MASKED)


def _parameters(context: Context) -> str:
    wanted = str(context.options.slots)
    for module, parameter in texts.PARAMETERS.items():
        found = context.fact(Answer, texts.live(module, context.options.slots), may_be_empty=True)
        if found is None:
            raise Undetermined(f"the kernel does not report {parameter} of {module}")
        if found != wanted:
            fail(f"{parameter} of {module} is {found}, not {wanted}")
    return f"{wanted} requests in flight to a server"


def _vast(context: Context) -> str:
    wanted = tuple(f"{name}={version}" for name, version in context.options.vast_packages.items())
    return held_at(context, wanted)


def _daemons(context: Context) -> str:
    mounted = mounted_by(context.node, context.options.mounts_kinds)
    return daemons_run(context, mounted, CLIENT_OF_KERBEROS)


CHECKS = (
    Check("the NFS client is installed and running", _runs, needs=_NEEDS),
    Check("the NFS client's files are as declared", _files),
    Check("rpcbind and rpc.statd are masked", _masked),
    Check("the kernel allows the declared number of requests in flight", _parameters, needs=_NEEDS),
    Check(
        "VAST's client is installed and held",
        _vast,
        applies=lambda node, options: options.uses_vast(node),
        needs=_NEEDS,
    ),
    Check(
        "the daemons for the declared security are running",
        _daemons,
        applies=lambda node, options: secured(mounted_by(node, options.mounts_kinds)),
        needs=_NEEDS,
    ),
    *checks("NFS"),
)
