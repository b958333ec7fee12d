"""Who may read metrics: clients with the password on the management network, and users for their own jobs."""

from __future__ import annotations

import time

import pytest

from rackwright.lab import names
from rackwright.model.listening import declared_listeners
from rackwright.model.types import NetworkPurpose
from rackwright.status import Status
from rackwright.verify import verify
from tests.racks.alerts.conftest import EXTERNAL, HEAD, HEAD_OUTSIDE
from tests.racks.alerts.devices import BMC_ADDRESS, UPS
from tests.racks.site import Site
from tests.racks.stranger import plugged_in

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_EXPORTERS = (
    *("alertmanager", "blackbox_exporter", "ipmi_exporter", "job_metrics", "mysqld_exporter"),
    *("node_exporter", "prometheus", "slurm_exporter", "snmp_exporter"),
)
_SUBMIT = (
    "cd /tmp && su {user} -s /bin/sh -c 'sbatch --parsable --gres=gpu:1 -o /dev/null --wrap \"sleep 600\"'"
)
_ASK = "su {user} -s /bin/sh -c 'job-metrics {job} --json' 2>&1 || :"


@pytest.mark.smoke
def test_everything_is_as_declared_and_stays_so(rack: Site):
    assert rack.cli("plan", str(rack.file)).out.strip() == "plan: nothing to change on 3 of 3 nodes"
    with rack.here():
        report = verify(rack.cluster, roles=frozenset(_EXPORTERS))
    wrong = [
        one
        for one in report.results
        if one.status not in (Status.PASS, Status.OUT_OF_SCOPE)
        and one.check != "notifications reach their receivers"  # the webhook is there during drills alone
    ]
    assert wrong == []
    assert {one.role for one in report.results} == set(_EXPORTERS)


@pytest.mark.smoke
def test_nothing_is_reached_from_outside_the_management_network(rack: Site):
    """A host on the external network, at the head's own address there and at that of the management network."""
    head = rack.cluster.by_name["head1"]
    ports = sorted(
        port
        for declared in declared_listeners(rack.cluster, head)
        if declared.owner in _EXPORTERS
        for port in range(declared.listener.ports[0], declared.listener.ports[1] + 1)
    )
    assert len(ports) >= len(_EXPORTERS)
    bridge = names.bridge(EXTERNAL["cidr"])
    with plugged_in(rack, "10.99.0.200/24", f"{HEAD}/32", bridge=bridge) as stranger:
        assert stranger.connect(HEAD_OUTSIDE, rack.cluster.ssh.port) == "open"  # it is there, and answers
        found = {
            (address, port): stranger.connect(address, port)
            for address in (HEAD, HEAD_OUTSIDE)
            for port in ports
        }
    assert [place for place, answer in found.items() if answer == "open"] == []


@pytest.mark.smoke
def test_no_exporter_answers_without_the_password(rack: Site):
    """Not to root of another node either; the certificate is checked with what the node trusts."""
    for node in rack.cluster.nodes:
        for declared in declared_listeners(rack.cluster, node):
            listener = declared.listener
            if declared.owner not in _EXPORTERS or NetworkPurpose.MANAGEMENT not in listener.purposes:
                continue
            url = f"https://{rack.cluster.management_address(node)}:{listener.ports[0]}"
            for path in (
                "/",
                "/metrics",
                "/api/v1/query?query=up",
                "/probe?target=x",
                f"/ipmi?target={BMC_ADDRESS}&module=bmc",
                f"/snmp?target={UPS.address}&auth=v3&module=ups_mib",
                "/api/v2/alerts",
                "/v1/jobs/1",
            ):
                status = rack.on(
                    "worker1",
                    f"curl -s -o /dev/null -m 10 -w '%{{http_code}}' -u prometheus:guess '{url}{path}'",
                )
                served = path == "/metrics" and declared.owner != "job_metrics"
                refused = ("401",) if served else ("401", "404")
                assert status.strip() in refused, f"{declared.owner} on {node.name}: {path} {status}"


def test_the_password_is_readable_where_prometheus_runs_and_nowhere_else(rack: Site):
    for name in ("password", "metrics_password"):
        path = f"/etc/rackwright-exporters/prometheus/{name}"
        secret = rack.on("head1", f"cat {path}").strip()
        assert len(secret) >= 20
        assert rack.on("head1", f"stat -c '%a %U %G' {path}").split() == ["640", "root", "prometheus"]
        for node in ("worker1", "worker2"):
            assert rack.on(node, f"grep -rlF '{secret}' /etc /var/lib 2>/dev/null || :").strip() == ""


def test_what_a_worker_can_catch_opens_neither_prometheus_nor_alertmanager(rack: Site):
    """Prometheus sends each exporter `metrics_password`, and root on its node may read it."""
    caught = rack.on("head1", "cat /etc/rackwright-exporters/prometheus/metrics_password").strip()
    urls = {
        f"https://{HEAD}:9090/api/v1/query?query=up": "401",
        f"https://{HEAD}:9093/api/v2/silences": "401",
        f"https://{HEAD}:9341/metrics": "401",  # Slurm's jobs and users
        f"https://{HEAD}:9115/probe?target={HEAD}&module=icmp": "401",
        f"https://{HEAD}:9116/snmp?target={UPS.address}&auth=v3&module=ups_mib": "401",
        f"https://{HEAD}:9100/metrics": "200",
    }
    for url, status in urls.items():
        ask = f"curl -s -o /dev/null -m 20 -w '%{{http_code}}' -u 'prometheus:{caught}' '{url}'"
        assert rack.on("worker1", ask).strip() == status, url


def test_a_user_sees_their_own_job_and_nothing_of_anothers(rack: Site):
    jobs = {user: rack.on("worker1", _SUBMIT.format(user=user)).strip() for user in ("ada", "bob")}
    try:
        seen = _until(rack, "ada", jobs["ada"])
        assert '"node": "worker' in seen
        for asker, owner in (("ada", "bob"), ("bob", "ada")):
            answer = rack.on("worker1", _ASK.format(user=asker, job=jobs[owner])).strip()
            assert answer == f"job-metrics: no job {jobs[owner]} of {asker} in the last 31 days"
            never = rack.on("worker1", _ASK.format(user=asker, job="99999")).strip()
            assert never == f"job-metrics: no job 99999 of {asker} in the last 31 days"
        assert '"user": "root"' in rack.on("worker1", f"job-metrics {jobs['bob']} --json")
    finally:
        rack.on("head1", f"scancel {' '.join(jobs.values())}")


def _until(rack: Site, user: str, job: str) -> str:
    """What the user sees once the job's figures have been collected."""
    for _ in range(60):
        answer = rack.on("worker1", _ASK.format(user=user, job=job))
        if '"series": [{' in answer:
            return answer
        time.sleep(2)
    raise AssertionError(answer)


def test_a_credential_opens_one_job_once(rack: Site):
    """An intercepted credential is useless: MUNGE refuses it the second time, and for another job."""
    ask = (
        "made=$(su ada -s /bin/sh -c \"munge -s 'rackwright job-metrics 1'\"); "
        f'for job in 2 1 1; do curl -s -m 20 -H "X-Munge-Credential: $made" https://{HEAD}:9911/v1/jobs/$job; echo; done'
    )
    other, first, again = rack.on("worker1", ask).splitlines()
    assert other == '{"error": "the credential is for something else"}'
    assert again == '{"error": "MUNGE refuses the credential"}'
    assert first == again or "no job 1 of ada" in first  # it was decoded for job 2 already
