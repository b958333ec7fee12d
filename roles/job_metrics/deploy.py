"""Applies the job_metrics role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.operations import files, units
from rackwright.operations.certificates import issue_certificates
from rackwright.roles.job_metrics import texts
from rackwright.roles.job_metrics.options import CLIENT, UNIT, JobMetricsOptions


@deploy("job_metrics")
def job_metrics(options: JobMetricsOptions) -> None:
    """The program for users, and the server beside Prometheus."""
    site = site_of()
    for path in host.loop(texts.FOLDERS):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create {path}", path=path)
    client = texts.client_files(site.cluster, site.node, options)
    for path, text in host.loop(client.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text, mode="755" if path == CLIENT else "644")
    server = texts.server_files(site.cluster, site.node, options)
    if not server:
        return
    issue_certificates(options)
    for path, text in host.loop(server.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text)
    chains = [one.chain for one in options.certificates(site.cluster, site.node)]
    units.unit(
        name="Start the job metrics server", unit=UNIT, restart_on=(*server, *chains), disruptive=False
    )
