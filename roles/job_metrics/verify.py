"""Checks of the job_metrics role."""

from __future__ import annotations

from functools import partial

from rackwright.boundary import printable
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.units import runs
from rackwright.claims.web import requires_password
from rackwright.model.cluster import Node
from rackwright.roles.job_metrics import texts
from rackwright.roles.job_metrics.options import CLIENT, UNIT, JobMetricsOptions

_NO_JOB = "job-metrics: no job "


def _files(context: CheckContext[JobMetricsOptions]) -> str:
    cluster, node, options = context.cluster, context.node, context.options
    wanted: dict[str, str | None] = {
        **texts.client_files(cluster, node, options),
        **texts.server_files(cluster, node, options),
    }
    return as_rendered(context, wanted, {CLIENT: "755"})


def _answers(context: CheckContext[JobMetricsOptions]) -> str:
    """Root's own credential is good here, the server decodes it, and Prometheus answers the server."""
    result = context.host.run(f"timeout 60 {CLIENT} 1")
    message = printable(result.stderr.strip() or result.stdout.strip(), 200)
    if result.rc in (124, 126, 127) or (result.rc == 0 and not message):
        raise Undetermined(f"`{CLIENT} 1` exited {result.rc}: {message or 'no message'}")
    if result.rc != 0 and not result.stderr.startswith(_NO_JOB):
        fail(message or f"`{CLIENT} 1` exited {result.rc} without a message")
    return "asked for job 1 as root"


def _refuses(context: CheckContext[JobMetricsOptions]) -> str:
    url = f"{context.options.url(context.cluster, context.node)}/v1/jobs/1"
    requires_password(context, url)
    return f"{url} requires a credential"


def _serves(node: Node, options: JobMetricsOptions) -> bool:
    return options.serves_on(node)


CHECKS = (
    Check("the job metrics programs are as declared", _files),
    Check("the job metrics server is running", partial(runs, unit=UNIT), applies=_serves, settle_seconds=20),
    Check(
        "job metrics are refused without a credential",
        _refuses,
        applies=_serves,
        live=True,
        settle_seconds=20,
    ),
    Check("users of this node can query job metrics", _answers, live=True, settle_seconds=40),
)
