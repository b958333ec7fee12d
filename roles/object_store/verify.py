"""Checks of the object_store role: endpoints answer, tools and settings are there, buckets are mounted."""

from __future__ import annotations

from rackwright.claims import patient
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered, at_path, has_access, holds_secret_text
from rackwright.claims.packages import installed
from rackwright.claims.units import runs
from rackwright.facts.mounts import MountTable
from rackwright.facts.settings import Answer
from rackwright.model.cluster import Node
from rackwright.mounts import live
from rackwright.osfamily.names import names
from rackwright.roles.object_store import texts
from rackwright.roles.object_store.options import ObjectStoreOptions
from rackwright.secrets.store import store_of

Context = CheckContext[ObjectStoreOptions]
_ASK = "curl -s -S -o /dev/null -w '%%{http_code}' --noproxy '*' --connect-timeout 10 --max-time 15%s %s"
_REFUSED = {
    6: "its name does not resolve",
    7: "nothing listens there",
    28: "it does not answer within 15 s",
    35: "it does not speak TLS",
    52: "it closes the connection",
    56: "it closes the connection",
    60: "its certificate is not trusted",
}
"""Exit statuses of curl that describe the server (curl(1))."""
_SECONDS = 15
_LOOK = """
import os
reading = len(os.listdir(arguments[0]))
"""


def _files(context: Context) -> str:
    options, store = context.options, store_of(context.cluster)
    for software in options.software:
        installed(context, names(context.node.family, software).packages)
    for path, mount in options.mounts.items():
        keys = texts.keys_path(options, path)
        holds_secret_text(context, keys, texts.keys(mount, lambda secret: store.get(secret).reveal()))
        has_access(context, keys, "600", "root", "root")
    wanted = texts.files(context.node, options)
    if wanted[texts.WRAPPER] is None and texts.MARKER not in (at_path(context, texts.WRAPPER).text or ""):
        del wanted[texts.WRAPPER]  # nothing, or an rclone of the site's
    there = context.fact(Answer, texts.of_ours(), may_be_empty=True)
    for name in texts.leftovers(there, options):
        service, env = texts.leftover_paths(name)
        wanted |= {service: None, env: None}
    return as_rendered(context, wanted, {texts.WRAPPER: "755"})


def _answers(context: Context) -> str:
    """Any status is an answer: without keys most stores refuse the request."""
    answered, ca = [], context.options.ca_file(context.node)
    for name, one in context.options.endpoints.items():
        command = _ASK.replace("15%s", "15 --cacert %s" if ca is not None else "15")
        given = (ca, one.url) if ca is not None else (one.url,)
        result = context.host.run(command, *given)
        if result.rc in _REFUSED:
            fail(f"{one.url} ({name}): {_REFUSED[result.rc]} (curl exited {result.rc})")
        status = result.stdout.strip()
        if result.rc != 0 or not status.isdecimal():
            raise Undetermined(
                f"cannot query {one.url}: {result.stderr.strip() or f'curl exited {result.rc}'}"
            )
        if status.startswith("5"):
            fail(f"{one.url} ({name}) answers with status {status}")
        answered.append(f"{one.url} answers ({status})")
    return ", ".join(answered)


def _mounted(context: Context) -> str:
    options, mounted = context.options, []
    table = context.fact(MountTable, tuple(options.mounts))
    for path in options.mounts:
        runs(context, options.unit_of(path))
        entry = live(table.get(path, ()))
        if entry is None:
            fail(f"{path} is not mounted")
        if not entry.type.startswith("fuse"):
            fail(f"{path} is {entry.type} from {entry.source}, not a bucket")
        if "ro" not in entry.options:
            fail(f"{path} is writable, not read-only")
        try:
            count = patient.run(context, path, _LOOK, path, seconds=_SECONDS)
        except patient.AnswerError as error:
            fail(f"{path} cannot be read: {error}")
        mounted.append(f"{path} ({count} entries)")
    return ", ".join(mounted)


def _has_mounts(node: Node, options: ObjectStoreOptions) -> bool:
    return bool(options.mounts)


CHECKS: tuple[Check, ...] = (
    Check("object store tools and settings are as declared", _files),
    Check("object store endpoints answer", _answers, live=True, timeout_seconds=120),
    Check(
        "declared buckets are mounted and can be read",
        _mounted,
        applies=_has_mounts,
        live=True,
        timeout_seconds=120,
    ),
)
