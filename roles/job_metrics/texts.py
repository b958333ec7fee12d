"""The files of the job_metrics role."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from rackwright.model.cluster import Cluster, Node
from rackwright.model.monitoring import USER, CollectsMetrics
from rackwright.model.services import IssuesCertificates
from rackwright.node_programs import one_text
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.job_metrics.options import CLIENT, FOLDER, SERVER, UNIT_FILE, JobMetricsOptions

SERVER_SETTINGS = f"{FOLDER}/server.json"
CLIENT_SETTINGS = f"{FOLDER}/client.json"
FOLDERS = (FOLDER, str(PurePosixPath(SERVER).parent))
_BY_ITSELF = "#!/usr/bin/python3 -IS\n"


def server_files(cluster: Cluster, node: Node, options: JobMetricsOptions) -> dict[str, str]:
    """Text by path, of mode 644, where the server runs."""
    collector = node.offers(CollectsMetrics)
    if collector is None:
        return {}
    ca = node.offers(IssuesCertificates)
    certificate = next(iter(options.certificates(cluster, node)), None)
    settings = {
        "address": str(cluster.management_address(node)),
        "port": options.port,
        "certificate": None if certificate is None else certificate.chain,
        "key": None if certificate is None else certificate.key,
        "prometheus": collector.metrics_url(cluster, node),
        "user": USER,
        "password_file": collector.password_file,
        "ca_file": None if ca is None else ca.trust_file,
        "operators": list(options.operators),
        "days": options.days,
    }
    return {
        SERVER: one_text("rackwright.job_metrics.server"),
        SERVER_SETTINGS: json.dumps(settings, indent=1) + "\n",
        UNIT_FILE: render(
            "job_metrics/unit.j2",
            user=names(node.family, "prometheus").settings["user"],
            program=SERVER,
            settings=SERVER_SETTINGS,
        ),
    }


def client_files(cluster: Cluster, node: Node, options: JobMetricsOptions) -> dict[str, str]:
    """Text by path where users are; `CLIENT` is of mode 755."""
    server = options.server(cluster)
    if server is None:  # refused by the options' problems
        return {}
    ca = node.offers(IssuesCertificates)
    settings = {"url": options.url(cluster, server), "ca_file": None if ca is None else ca.trust_file}
    return {
        CLIENT: _BY_ITSELF + one_text("rackwright.job_metrics.client"),
        CLIENT_SETTINGS: json.dumps(settings, indent=1) + "\n",
    }
