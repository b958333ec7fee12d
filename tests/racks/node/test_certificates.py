"""Certificates of the site's CA: issued, served, trusted, renewed before they expire, and found when they have."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from rackwright.certificates.read import pem
from rackwright.model.services import Certificate, IssuesCertificates, NeedsCertificates
from rackwright.secrets.secret import generate
from rackwright.secrets.store import store_of
from rackwright.status import Status
from rackwright.verify import verify
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults:
  os: debian-13
  platform: container
  sku: lab-node
  lab: {cpus: 2, memory_mib: 2048, containers: true}
networks:
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.77.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.77.0.10}}
  - {nodes: worker1, roles: [worker], addresses: {management: 10.77.0.11}}
roles:
  base: {}
  site_ca: {}
  registry_cache:
    registries:
      site: {port: 5001, storage: /scratch/registry, anonymous: true}
  containerd: {root: /scratch/containerd, memlock_mib: 4, nofile: 16384}
  docker: {data_root: /scratch/docker, memlock_mib: 4, nofile: 16384}
  podman:
    graph_root: /scratch/podman
    memlock_mib: 4
    nofile: 16384
    pids_limit: 0
"""
ROLES = frozenset({"site_ca", "registry_cache", "containerd", "docker", "podman"})
ISSUE = ("head1", "registry_cache", "Issue the certificate registry")
RESTART = ("head1", "registry_cache", "Start registry site")
VALID = "certificates are valid and not due for renewal"
CHAIN, KEY = "/etc/docker/registry/site-ca.crt", "/etc/docker/registry/site-ca.key"
IMAGE = "head1.lab.test:5001/library/one:1"
RENEW_BEFORE = timedelta(days=30)


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A head with a registry and a worker that pulls from it, applied once."""
    site = Site(tmp_path_factory.mktemp("certificates"), "crt", yaml.safe_load(_DECLARED))
    with site.booted():
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared, repaired after the previous test."""
    put_right(rack)
    return rack


def bad(site: Site) -> dict[tuple[str, str], tuple[Status, str]]:
    """(node, check) to status and evidence, of everything that verify does not pass."""
    with site.here():
        report = verify(site.cluster, roles=ROLES)
    return {
        (result.node, result.check): (result.status, result.evidence)
        for result in report.results
        if result.status not in (Status.PASS, Status.OUT_OF_SCOPE)
    }


def put_certificate(site: Site, until: datetime, *, ca: str | None = None) -> None:
    """Give the registry a certificate with this end and a key of the test's, and restart it.

    Signed by the site's CA, or by another one whose secret is `ca`.
    """
    with site.here():
        cluster = site.cluster
        options = cluster.primary.offers(IssuesCertificates)
        assert options is not None
        secret = ca or store_of(cluster).get(options.key_secret).reveal()
        issuer = options.issuer(cluster, secret)
    key = ec.generate_private_key(ec.SECP256R1())
    since = min(datetime.now(UTC), until) - timedelta(days=60)
    chain = pem(issuer.sign(key, registry(site).names, since, until))
    plain = serialization.NoEncryption()
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    for path, text in ((KEY, key.private_bytes(*form)), (CHAIN, chain.encode())):
        site.on("head1", f"base64 -d <<<{base64.b64encode(text).decode()} >{path}")
    site.on("head1", "systemctl restart registry-cache@site")


def registry(site: Site) -> Certificate:
    """The registry's certificate, as declared."""
    needs = site.cluster.primary.offers(NeedsCertificates)
    assert needs is not None
    (one,) = needs.certificates(site.cluster, site.cluster.primary)
    return one


def changes(plan: dict[str, Any], operation: tuple[str, str, str]) -> list[dict[str, Any]]:
    """The changes of one operation of a plan."""
    return [
        change
        for node in plan["nodes"]
        for one in node["operations"]
        if (node["node"], one["role"], one["name"]) == operation
        for change in one["changes"]
    ]


def served_until(site: Site) -> str:
    """When the certificate ends that the worker gets from the registry."""
    return site.on(
        "worker1",
        "openssl s_client -connect 10.77.0.10:5001 </dev/null 2>/dev/null | openssl x509 -noout -enddate",
    )


@pytest.mark.smoke
def test_a_second_apply_is_empty_and_all_claims_hold(site: Site):
    assert operations(site.plan(0, full=True)) == set()
    assert bad(site) == {}


@pytest.mark.smoke
def test_a_worker_pushes_and_pulls_by_https(site: Site):
    """By each name of the certificate; with the CA of another site nothing is trusted."""
    for name in registry(site).names:
        assert site.on("worker1", f"curl -sf --noproxy '*' https://{name}:5001/v2/").strip() == "{}"
    site.on("worker1", "cd /tmp; echo one >one; tar cf one.tar one")
    site.on(
        "worker1", f"podman import -q /tmp/one.tar {IMAGE} && podman push -q {IMAGE} && podman rmi {IMAGE}"
    )
    for pull in (
        f"podman pull -q {IMAGE}",
        f"docker pull -q {IMAGE}",
        f"ctr images pull --hosts-dir /etc/containerd/certs.d {IMAGE}",
    ):
        site.on("worker1", pull)
    other = "/tmp/other.crt"
    with site.here():
        options = site.cluster.primary.offers(IssuesCertificates)
        assert options is not None
        text = options.issuer(site.cluster, generate("site_ca_key")).trusted
    site.on("worker1", f"base64 -d <<<{base64.b64encode(text.encode()).decode()} >{other}")
    status = site.on(
        "worker1",
        f"curl -s --noproxy '*' --cacert {other} --capath /nowhere https://head1:5001/v2/ || echo $?",
    )
    assert status == "60\n"


def test_the_key_is_the_registry_s_alone_and_left_nowhere(site: Site):
    assert site.on("head1", f"stat -c '%a %U:%G' {KEY}") == "640 root:docker-registry\n"
    (body,) = site.on("head1", f"sed -n 2p {KEY}").split()
    assert len(body) == 64
    kept = [
        path for path in site.folder.rglob("*") if path.is_file() and body in path.read_text(errors="replace")
    ]
    assert kept == []


def test_an_expired_certificate_is_found_and_renewed(site: Site):
    put_certificate(site, datetime.now(UTC) - timedelta(hours=5))
    status, evidence = bad(site)["head1", VALID]
    assert status == "FAIL"
    assert f"{CHAIN} expired on " in evidence
    plan = site.plan(2)
    assert operations(plan) == {ISSUE, RESTART}
    (change,) = changes(plan, ISSUE)
    assert change["kind"] == "certificate"
    assert change["because"] == "it has expired"
    assert change["after"] == "90 days, names 10.77.0.10, head1, head1.lab.test"
    before = served_until(site)
    site.apply()
    assert served_until(site) != before
    assert operations(site.plan(0)) == set()
    assert bad(site) == {}


def test_one_that_expires_soon_is_a_warning_and_is_renewed(site: Site):
    put_certificate(site, datetime.now(UTC) + RENEW_BEFORE - timedelta(days=1))
    status, evidence = bad(site)["head1", VALID]
    assert status == "WARN"
    assert "the next apply renews it" in evidence
    before = served_until(site)
    site.converge()
    assert served_until(site) != before
    assert bad(site) == {}


def test_time_alone_makes_a_certificate_due_and_drift_reports_it(site: Site):
    """No file of the node changes in between, and the quick check has found it in sync before."""
    due = datetime.now(UTC) + timedelta(seconds=60)
    put_certificate(site, due + RENEW_BEFORE)
    for _ in range(2):
        planned = site.plan(0)
    assert next(node for node in planned["nodes"] if node["node"] == "head1")["evaluated"] == 0
    assert datetime.now(UTC) < due
    time.sleep((due - datetime.now(UTC)).total_seconds() + 2)
    found = site.cli("drift", str(site.file), expect=None)
    assert "Issue the certificate registry" in found.out
    assert f"expires within {RENEW_BEFORE.days} days" in found.out
    site.converge()


def test_a_certificate_of_another_ca_is_found_and_replaced(site: Site):
    put_certificate(site, datetime.now(UTC) + timedelta(days=80), ca=generate("site_ca_key"))
    found = bad(site)
    assert found["head1", "certificates are signed by the site CA"][0] == "FAIL"
    assert found["head1", "services present these certificates"][0] == "FAIL"
    for pull in (f"podman pull -q {IMAGE}", f"docker pull -q {IMAGE}"):
        refused = site.on("worker1", f"{pull} 2>&1 || :")
        assert "certificate signed by unknown authority" in refused
    site.converge()
    assert bad(site) == {}


def test_a_node_that_lost_its_trust_is_found_and_repaired(site: Site):
    site.on("worker1", "rm /usr/local/share/ca-certificates/rackwright-site-ca.crt; update-ca-certificates")
    found = bad(site)
    assert found["worker1", "programs on the node trust the site CA"][0] == "FAIL"
    assert site.on("worker1", "curl -s --noproxy '*' https://head1:5001/v2/ || echo $?") == "60\n"
    site.converge()
    assert bad(site) == {}


def test_a_key_that_others_may_read_is_found_and_closed(site: Site):
    site.on("head1", f"chmod 644 {KEY}")
    found = bad(site)
    assert set(found) == {("head1", "keys match their certificates and only their services can read them")}
    before = served_until(site)
    site.converge()
    assert served_until(site) == before
    assert bad(site) == {}
