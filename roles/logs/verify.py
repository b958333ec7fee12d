"""What the logs role claims of a node and of the server."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from rackwright.boundary import Refused, last_line, read_json_as
from rackwright.certificates.read import pem
from rackwright.claims.check import Check, CheckContext, TestinfraHost, Undetermined, fail
from rackwright.claims.files import as_rendered, has_access, holds_secret_text
from rackwright.claims.units import as_declared, is_masked, runs, state_of
from rackwright.model.cluster import Node
from rackwright.model.services import IssuesCertificates
from rackwright.osfamily.names import names
from rackwright.roles.logs import paths, texts
from rackwright.roles.logs.arrival import arrive, minutes, refuses_strangers
from rackwright.roles.logs.options import LogsOptions
from rackwright.roles.logs.store_checks import LOKI_CHECKS, SEARCH_CHECKS
from rackwright.roles.logs.stores import JournalStore, SearchStore, size_bytes
from rackwright.secrets.store import store_of

_REPORT = f"{texts.PYTHON} -IS {paths.KEEPER} --report"


class _Last(BaseModel):
    model_config = ConfigDict(strict=True)
    at: float = 0.0
    errors: list[str] = []


class _Report(BaseModel):
    model_config = ConfigDict(strict=True)
    version: int
    now: float
    newest: dict[str, float]
    oldest_closed: float | None
    bytes: int
    audit_days: list[str]
    last: _Last


_AS_REPORT = TypeAdapter(_Report)


def _is_journal(node: Node, options: LogsOptions) -> bool:
    return isinstance(options.store, JournalStore)


def _is_receiver(node: Node, options: LogsOptions) -> bool:
    return isinstance(options.store, JournalStore) and options.is_server(node)


def _store(context: CheckContext[LogsOptions]) -> JournalStore:
    if not isinstance(context.options.store, JournalStore):
        raise Undetermined("another store is declared")
    return context.options.store


def _has_ca(node: Node, options: LogsOptions) -> bool:
    return not isinstance(options.store, SearchStore)


def _trusts_the_ca_alone(context: CheckContext[LogsOptions]) -> str:
    """Certificates of a further CA that the site trusts must not be accepted."""
    ca = context.node.offers(IssuesCertificates)
    if ca is None:
        raise Undetermined("no role issues certificates here")
    issuer = ca.issuer(context.cluster, store_of(context.cluster).get(ca.key_secret).reveal())
    return holds_secret_text(context, paths.CA, pem(issuer.certificate))


def _sent_as_declared(context: CheckContext[LogsOptions]) -> str:
    return as_rendered(context, texts.sender_files(context.cluster, context.options))


def _uploader_runs(context: CheckContext[LogsOptions]) -> str:
    state = state_of(context, paths.UPLOAD)
    as_declared(context, paths.UPLOAD, state)
    if not state.enabled:
        fail(f"{paths.UPLOAD} is {state.file_state or 'not enabled'}: it does not start at boot")
    if state.active_state in ("activating", "failed"):
        printed = context.host.run(
            "journalctl --quiet --no-pager --lines=3 --output=cat _COMM=systemd-journal"
        )
        why = last_line(str(printed.stdout)) if printed.rc == 0 else "its journal cannot be read"
        fail(f"{paths.UPLOAD} is {state.active_state}; its last message: {why}")
    if not state.active:
        fail(f"{paths.UPLOAD} is {state.active_state}")
    return f"{paths.UPLOAD} is active and enabled"


def _marks(context: CheckContext[LogsOptions]) -> str:
    as_rendered(context, texts.mark_files())
    return runs(context, paths.MARK_TIMER)


def _packaged_is_off(context: CheckContext[LogsOptions]) -> str:
    why = "it accepts lines from anyone where systemd was built without GnuTLS"
    return is_masked(context, paths.PACKAGED_SOCKET, why=why)


def _receives(context: CheckContext[LogsOptions]) -> str:
    return "; ".join(runs(context, unit) for unit in (paths.SOCKET, paths.RECEIVER_UNIT))


def _server_settings(context: CheckContext[LogsOptions]) -> str:
    store = _store(context)
    files = {
        **texts.programs(),
        **texts.server_files(context.cluster, context.node, store),
        **texts.keeper_files(context.cluster, context.options, store),
    }
    return as_rendered(context, files, dict.fromkeys(texts.programs(), "755"))


def _refuses_strangers(context: CheckContext[LogsOptions]) -> str:
    return refuses_strangers(context, f"{context.options.url(context.cluster)}/upload")


def _is_private(context: CheckContext[LogsOptions]) -> str:
    user = names(context.node.family, "journal-remote").settings["user"]
    has_access(context, paths.JOURNALS, "750", user, user)
    has_access(context, paths.AUDIT, "700", "root", "root")
    found = context.output("find %s %s -perm /007 ! -type l", paths.JOURNALS, paths.AUDIT).splitlines()
    if found:
        fail(f"every user may read {found[0]}" + (f" and {len(found) - 1} more" if found[1:] else ""))
    return f"{paths.JOURNALS} and {paths.AUDIT} are closed to others"


def _report(context: CheckContext[LogsOptions], host: TestinfraHost) -> Any:  # noqa: ANN401 - _Report
    text = context.output(_REPORT, host=host)
    try:
        return read_json_as(_AS_REPORT, text)
    except Refused as error:
        raise Undetermined(f"unusable report of the keeper: {error}") from None


def _is_kept(context: CheckContext[LogsOptions]) -> str:
    options, store = context.options, _store(context)
    runs(context, paths.KEEPER_TIMER)
    report = _report(context, context.host)
    if report.last.at < report.now - 3 * 60 * texts.KEEPER_MINUTES:
        fail(
            f"the keeper last ran {minutes(report.now - report.last.at)} ago"
            if report.last.at
            else "it has never run"
        )
    if report.last.errors:
        fail(f"the audit trail is not complete: {'; '.join(report.last.errors[:3])}")
    limit = report.now - (options.retention_days + 1) * 86400
    if report.oldest_closed is not None and report.oldest_closed < limit:
        fail(
            f"lines are {(report.now - report.oldest_closed) / 86400:.0f} days old, not {options.retention_days}"
        )
    open_files = len(report.newest) * size_bytes(store.max_file)
    if report.bytes > size_bytes(store.max_use) + open_files:
        fail(f"the central journal has {report.bytes >> 30} GiB, more than {store.max_use}")
    return f"{report.bytes >> 20} MiB of {store.max_use}; audit trail of {len(report.audit_days)} days"


def _arrives(context: CheckContext[LogsOptions]) -> str:
    server = context.options.server_of(context.cluster)
    report = _report(context, context.on(server.name))
    return arrive(context.cluster, report.newest, report.now, server.name)


CHECKS = (
    Check("the journal has time marks", _marks),
    Check("log senders and receiver trust only the site CA", _trusts_the_ca_alone, applies=_has_ca),
    Check("the journal is sent as declared", _sent_as_declared, applies=_is_journal),
    Check("the journal uploader is running", _uploader_runs, applies=_is_journal, settle_seconds=70),
    Check("the distribution's log receiver is off", _packaged_is_off, applies=_is_journal),
    Check("the log receiver is running", _receives, applies=_is_receiver),
    Check("the log receiver, gate and keeper have their settings", _server_settings, applies=_is_receiver),
    Check("sending logs requires a certificate", _refuses_strangers, applies=_is_receiver, live=True),
    Check("only root can read the logs of all nodes", _is_private, applies=_is_receiver),
    Check("logs are kept as long as declared", _is_kept, applies=_is_receiver, settle_seconds=60),
    Check(
        "logs of every node arrive",
        _arrives,
        scope="cluster",
        applies=_is_journal,
        settle_seconds=90,
        timeout_seconds=150,
    ),
    *LOKI_CHECKS,
    *SEARCH_CHECKS,
)
