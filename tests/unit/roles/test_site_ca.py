"""The site_ca role: options, its files, what runtimes and registries do with them, and its checks."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from rackwright.certificates.issuer import OnNode
from rackwright.certificates.read import pem
from rackwright.containers import RegistryAccess, site_registries
from rackwright.engine.new_secrets import needed_secrets
from rackwright.errors import SecretsError
from rackwright.facts.certificates import Anchors, CertificateAt
from rackwright.model.types import NodeRole
from rackwright.roles.containerd import texts as containerd
from rackwright.roles.containerd.options import ContainerdOptions
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.podman.options import PodmanOptions
from rackwright.roles.podman.verify import CHECKS as PODMAN_CHECKS
from rackwright.roles.registry_cache import texts as registry_texts
from rackwright.roles.registry_cache.options import Registry, RegistryCacheOptions
from rackwright.roles.site_ca import texts, verify
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.roles.site_ca.verify import CHECKS
from rackwright.secrets.secret import generate
from rackwright.secrets.store import Secret
from tests.unit.certificates.authorities import (
    DAY,
    NOW,
    SECRET,
    issuer,
    key_pem,
    new_key,
    on_node,
    self_signed,
)
from tests.unit.roles.container_site import runtimes, sentences
from tests.unit.roles.fake_facts import asked, file, link
from tests.unit.roles.fake_host import FakeHost, claimed, content, errors_in, judged, planned
from tests.unit.roles.sites import head, worker

OPTIONS = SiteCaOptions()
REGISTRY = RegistryCacheOptions(registries={"site": Registry(port=5001, anonymous=True)})
SITE = runtimes(mirror=None, site_ca=OPTIONS, registry_cache=REGISTRY, podman=PodmanOptions())
HEAD = head(SITE)
TRUST = SiteCaOptions.trust_file
NAMES = ("head1.test.example", "head1", "10.9.0.10")
SERVED_AT = tuple(f"{name}:5001" for name in NAMES)


class _Store:
    def get(self, name):
        return Secret(name, SECRET)


@pytest.fixture(autouse=True)
def _store(monkeypatch):
    monkeypatch.setattr(verify, "store_of", lambda cluster: _Store())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"authority": "given"}, "A CA of the site needs its certificate."),
        (
            {"certificate": "ca.pem"},
            "`certificate` is for a CA of the site's own; rackwright derives that of an own CA from its key.",
        ),
        (
            {"authority": "given", "certificate": "ca.pem", "organization": "x"},
            "The name of a given CA is in its certificate.",
        ),
        (
            {"days": 30},
            "Certificates of 30 days that are renewed 30 days before their end would be renewed by every apply.",
        ),
        ({"days": 1}, "Input should be greater than or equal to 2"),
        ({"ca_days": 9001}, "Input should be less than or equal to 9000"),
        ({"key": "rsa-1024"}, "Input should be 'ecdsa-p256' or 'rsa-3072'"),
        ({"organization": ""}, "String should have at least 1 character"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(SiteCaOptions, given) == [sentence]


KEY = new_key()
GIVEN = SiteCaOptions(authority="given", certificate=Path("ca.pem"))


def beside(tmp_path, text, options=GIVEN):
    """A site with this file beside its cluster file."""
    if text is not None:
        (tmp_path / "ca.pem").write_text(text)
    return runtimes(site_ca=options).model_copy(update={"path": tmp_path / "site.yaml"})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (pem(self_signed(KEY)), None),
        (None, "The certificate ca.pem cannot be read: no such file or directory."),
        ("hello", "ca.pem is not the certificate of one CA: it contains something other than certificates."),
        (pem(self_signed(KEY)) * 2, "ca.pem is not the certificate of one CA: it holds 2 certificates."),
        (
            pem(self_signed(KEY)) + key_pem(KEY),
            "ca.pem is not the certificate of one CA: it contains something other than certificates.",
        ),
        (pem(self_signed(KEY, ca=False)), "The certificate ca.pem is not a CA certificate."),
        (
            pem(self_signed(KEY, NOW - DAY)),
            f"The certificate ca.pem expired on {NOW - DAY:%Y-%m-%d}.",
        ),
    ],
)
def test_a_given_certificate(tmp_path, text, sentence):
    found = sentences(beside(tmp_path, text), "site_ca")
    assert [(path, message) for path, message, _ in found] == (
        [("certificate", sentence)] if sentence else []
    )


def test_further_certificates_are_checked_as_well(tmp_path):
    site = beside(tmp_path, "hello", SiteCaOptions(extra_trust=(Path("ca.pem"),)))
    assert [path for path, _, _ in sentences(site, "site_ca")] == ["extra_trust[0]"]


def test_an_old_ca_may_be_trusted_until_it_is_replaced(tmp_path):
    site = beside(tmp_path, pem(self_signed(KEY, NOW - DAY)), SiteCaOptions(extra_trust=(Path("ca.pem"),)))
    assert sentences(site, "site_ca") == []


def test_a_given_ca_has_a_supplied_key(tmp_path):
    site = beside(tmp_path, pem(self_signed(KEY)))
    assert (GIVEN.supplied_secrets, OPTIONS.supplied_secrets) == (("site_ca_key",), ())
    assert GIVEN.issuer(site, key_pem(KEY)).certificate.subject.rfc4514_string() == "CN=Site Root"
    with pytest.raises(SecretsError, match="does not match its certificate"):
        GIVEN.issuer(site, key_pem(new_key()))


def test_one_cluster_has_one_ca():
    """Leaves may live shorter on some nodes; the CA is the same on all."""
    for other, count in ((SiteCaOptions(organization="x"), 1), (SiteCaOptions(days=60), 0)):
        odd = worker(SITE).model_copy(update={"options": {"site_ca": other}})
        site = SITE.model_copy(update={"nodes": (HEAD, odd)})
        found = sentences(site, "site_ca", "head1")
        assert [message.partition(" would have a different CA")[0] for _, message, _ in found] == [
            "gpu1"
        ] * count


def test_the_key_of_a_given_ca_is_never_generated(tmp_path):
    assert needed_secrets(beside(tmp_path, pem(self_signed(KEY))), None, None) == ()
    assert needed_secrets(runtimes(site_ca=OPTIONS), None, None) == ("site_ca_key",)


def test_an_expired_ca_issues_nothing(monkeypatch):
    old = "made 2020-01-01T00:00:00+00:00\n" + SECRET.partition("\n")[2]
    options = SiteCaOptions(ca_days=30)
    with pytest.raises(SecretsError, match="expired on 2020-01-31: nothing can be issued"):
        options.issuer(SITE, old)
    assert SiteCaOptions(ca_days=9000).issuer(SITE, old).certificate.not_valid_after_utc.year == 2044


def test_what_nodes_trust(tmp_path):
    other = pem(self_signed(KEY))
    options = SiteCaOptions(extra_trust=(Path("ca.pem"),))
    site = beside(tmp_path, other, options)
    found = options.issuer(site, SECRET)
    assert found.trusted == pem(found.certificate) + other
    names = texts.anchors_of(found, options.extra(site))
    assert list(names.values()) == [pem(found.certificate), other]
    assert all(name.startswith("rackwright-") and name.endswith(".crt") for name in names)


def test_what_the_head_gets():
    plan = planned(SITE, HEAD)
    assert plan.error is None
    roles = [operation.role for operation in plan.operations]
    assert roles.index("site_ca") < roles.index("registry_cache")
    assert content(plan, TRUST) == texts.OFFLINE
    reported = {change.target: change for operation in plan.operations for change in operation.changes}
    assert reported["/etc/docker/registry/site-ca.crt"].kind == "certificate"
    assert reported["/etc/docker/registry/site-ca.crt"].after == "names 10.9.0.10, head1, head1.test.example"
    restart = next(c for c in reported.values() if c.kind == "unit" and "site.service" in c.target)
    assert restart.after in ("running", "enabled")
    assert reported[f"{HEAD.family.trust_folder}/rackwright-site-ca.crt"].kind == "certificate"


def test_registries_with_a_certificate_of_the_site():
    (one,) = REGISTRY.certificates(SITE, HEAD)
    assert (one.names, one.serves, one.group) == (NAMES, ("10.9.0.10:5001",), "docker-registry")
    assert site_registries(SITE) == SERVED_AT
    config = yaml.safe_load(registry_texts.config_yml("site", SITE, REGISTRY, str))
    assert config["http"]["tls"] == {"certificate": one.chain, "key": one.key}
    assert registry_texts.url("site", SITE, REGISTRY) == "https://10.9.0.10:5001"
    plain = REGISTRY.model_copy(update={"plain_http": True})
    assert plain.certificates(SITE, HEAD) == ()
    assert registry_texts.url("site", SITE, plain) == "http://10.9.0.10:5001"
    own = RegistryCacheOptions(registries=REGISTRY.registries, tls_certificate="/a", tls_key="/b")
    assert site_registries(runtimes(site_ca=OPTIONS, registry_cache=own)) == ()
    config = yaml.safe_load(registry_texts.config_yml("site", SITE, own, str))
    assert config["http"]["tls"] == {"certificate": "/a", "key": "/b"}


def test_registries_without_a_certificate_are_refused():
    site = runtimes(mirror=None, registry_cache=REGISTRY)
    assert sentences(site, "registry_cache", "head1") == [
        (
            "",
            "The registries have no certificate: images could be changed in transit.",
            "add the role `site_ca: {}`, give `tls_certificate` and `tls_key`, or declare it: `plain_http: true`",
        )
    ]
    assert sentences(SITE, "registry_cache", "head1") == []


def test_plain_http_beside_a_ca_is_a_warning_and_at_a_tls_registry_a_mistake():
    plain = REGISTRY.model_copy(update={"plain_http": True})
    site = runtimes(mirror=None, site_ca=OPTIONS, registry_cache=plain)
    assert [path for path, _, _ in plain.warnings(site)] == ["plain_http"]
    old = DockerOptions(registries={"head1:5001": RegistryAccess(plain_http=True)})
    found = sentences(runtimes(mirror=None, site_ca=OPTIONS, registry_cache=REGISTRY, docker=old), "docker")
    assert [(path, message) for path, message, _ in found] == [
        (
            'registries["head1:5001"].plain_http',
            "The registry head1:5001 has a certificate of the site's CA and does not accept plain HTTP.",
        )
    ]


def test_a_node_that_pulls_and_trusts_nothing_is_a_warning():
    alone = worker(SITE).model_copy(update={"options": {"podman": PodmanOptions()}})
    site = SITE.model_copy(update={"nodes": (HEAD, alone)})
    assert [message.split(":")[0] for _, message, _ in REGISTRY.warnings(site)] == [
        "gpu1 pulls images and does not run the role site_ca"
    ]
    assert list(REGISTRY.warnings(SITE)) == []


@pytest.mark.parametrize(
    ("role", "options", "folder"),
    [
        ("docker", DockerOptions, "/etc/docker/certs.d"),
        ("podman", PodmanOptions, "/etc/containers/certs.d"),
        ("containerd", ContainerdOptions, "/etc/containerd/certs.d"),
    ],
)
def test_runtimes_trust_the_registries(role, options, folder):
    site = runtimes(mirror="head1:5001", site_ca=OPTIONS, registry_cache=REGISTRY, **{role: options()})
    node = worker(site)
    reported = {
        change.target: change.after
        for operation in planned(site, node).operations
        for change in operation.changes
        if change.kind == "link"
    }
    assert reported == {f"{folder}/{name}/ca.crt": f"link to {TRUST}" for name in SERVED_AT}


def test_a_declared_ca_of_a_registry_comes_first():
    options = PodmanOptions(registries={"head1:5001": RegistryAccess(ca=Path("other.pem"))})
    assert "/etc/containers/certs.d/head1:5001/ca.crt" not in options.trust_links(SITE, worker(SITE))
    assert options.trusted_by(SITE, worker(SITE), "head1:5001") == "/etc/containers/certs.d/head1:5001/ca.crt"
    assert options.trusted_by(SITE, worker(SITE), "quay.io") is None


def test_containerd_names_the_ca_for_each_registry_and_the_mirror():
    options = ContainerdOptions()
    site = runtimes(mirror="head1:5001", site_ca=OPTIONS, registry_cache=REGISTRY, containerd=options)
    found = containerd.hosts(site, worker(site), options, str)
    ca = 'ca = "/etc/containerd/certs.d/head1:5001/ca.crt"'
    assert ca in found["/etc/containerd/certs.d/docker.io/hosts.toml"]
    assert ca in found["/etc/containerd/certs.d/head1:5001/hosts.toml"]
    assert len(found) == 1 + len(SERVED_AT)


def test_the_check_of_a_runtime():
    name = "Podman's registry certificates and logins are as declared"
    paths = [f"/etc/containers/certs.d/{one}/ca.crt" for one in SERVED_AT]
    good = {line: answer for path in paths for line, answer in link(path, TRUST).items()}
    for answers, status, evidence in (
        (good, "PASS", "3 certificates, no logins"),
        ({**good, **file(paths[0], None)}, "FAIL", f"{paths[0]} is missing"),
        ({**good, **link(paths[0], "/tmp/x")}, "FAIL", f"{paths[0]} is a link to /tmp/x, not to {TRUST}"),
        ({}, "UNKNOWN", None),
    ):
        found = judged("podman", PODMAN_CHECKS, name, SITE, worker(SITE), FakeHost(answers))
        assert found.status == status
        assert evidence in (None, found.evidence)


# The checks

CA = SITE.by_name["head1"].options["site_ca"].issuer(SITE, SECRET)
(DECLARED,) = REGISTRY.certificates(SITE, HEAD)
QUESTION = asked(CertificateAt().command(DECLARED.chain, DECLARED.key, 30))
GOOD = on_node(CA, names=NAMES)
VALID = "certificates are valid and not due for renewal"
NAMED = "certificates have the declared names"
SIGNED = "certificates are signed by the site CA"
KEYS = "keys match their certificates and only their services can read them"
SERVED = "services present these certificates"
TRUSTS = "programs on the node trust the site CA"
LIVES = "the site CA is valid for at least another year"


def answer(found: OnNode) -> dict[str, str]:
    lines = [f"chain {found.chain or 'absent'}", f"key {found.key or 'absent'}"]
    if found.key_sha256:
        lines.append(f"public {found.key_sha256}  -")
    return {QUESTION: "\n".join([*lines, found.pem])}


def test_only_nodes_with_certificates_are_asked_for_them():
    alone = runtimes(mirror=None, site_ca=OPTIONS)
    assert claimed("site_ca", CHECKS, worker(alone)) == (TRUSTS, LIVES)
    assert VALID in claimed("site_ca", CHECKS, HEAD)


@pytest.mark.parametrize("name", [check.name for check in CHECKS if check.name != LIVES])
def test_no_check_passes_without_knowing(name):
    assert judged("site_ca", CHECKS, name, SITE, HEAD, FakeHost({})).status == "UNKNOWN"
    assert judged("site_ca", CHECKS, name, SITE, HEAD, FakeHost({}, always="")).status in ("UNKNOWN", "FAIL")


def _until(days: float) -> str:
    return (NOW + days * DAY).strftime("%Y-%m-%d %H:%M UTC")


@pytest.mark.parametrize(
    ("name", "found", "status", "evidence"),
    [
        (VALID, GOOD, "PASS", f"registry: until {_until(60)}"),
        (VALID, on_node(CA, until=NOW - DAY), "FAIL", f"{DECLARED.chain} expired on {_until(-1)}"),
        (
            VALID,
            on_node(CA, until=NOW + 29 * DAY),
            "WARN",
            f"{DECLARED.chain} expires on {_until(29)}: the next apply renews it",
        ),
        (
            VALID,
            on_node(CA, since=NOW + 2 * DAY),
            "FAIL",
            f"{DECLARED.chain} is not valid before {_until(2)}",
        ),
        (VALID, OnNode(), "FAIL", f"{DECLARED.chain} is missing"),
        (
            VALID,
            replace(GOOD, pem="rubbish"),
            "UNKNOWN",
            f"{DECLARED.chain} cannot be read: it contains something other than certificates",
        ),
        (NAMED, GOOD, "PASS", "registry: 10.9.0.10, head1, head1.test.example"),
        (
            NAMED,
            on_node(CA, names=("other",)),
            "FAIL",
            f"{DECLARED.chain} is for other, not for 10.9.0.10, head1, head1.test.example",
        ),
        (SIGNED, GOOD, "PASS", "registry: signed by the site's CA"),
        (
            SIGNED,
            on_node(issuer(generate("site_ca_key")), names=NAMES),
            "FAIL",
            f"{DECLARED.chain} is not signed by the site's CA",
        ),
        (KEYS, GOOD, "PASS", f"registry: {DECLARED.key} is 640 root:docker-registry"),
        (
            KEYS,
            replace(GOOD, key="644 root:root"),
            "FAIL",
            f"{DECLARED.key} is 644 root:root, not 640 root:docker-registry",
        ),
        (KEYS, replace(GOOD, key=None), "FAIL", f"{DECLARED.key} is missing"),
        (
            KEYS,
            replace(GOOD, key_sha256="0" * 64),
            "FAIL",
            f"{DECLARED.key} is not the key of {DECLARED.chain}",
        ),
        (KEYS, replace(GOOD, key_sha256=None), "UNKNOWN", f"{DECLARED.key} cannot be read with openssl"),
    ],
    # without the times in them: the processes of a test run begin in different minutes
    ids=lambda value: value.partition(" ")[0] if isinstance(value, str) else None,
)
def test_check_of_a_certificate(name, found, status, evidence):
    result = judged("site_ca", CHECKS, name, SITE, HEAD, FakeHost(answer(found)))
    assert (result.status, result.evidence) == (status, evidence)


S_CLIENT = (
    f"timeout 20 openssl s_client -connect 10.9.0.10:5001 -servername {NAMES[0]} -CAfile {TRUST} </dev/null 2>&1 "
    "| head -c 65536"
)
TRUSTED = "Verify return code: 0 (ok)"
THERE = {"sh -c 'command -v openssl'": "/usr/bin/openssl"}


@pytest.mark.parametrize(
    ("printed", "status", "evidence"),
    [
        (f"CONNECTED\n{GOOD.pem}\n{TRUSTED}", "PASS", "registry: served at 10.9.0.10:5001"),
        (
            f"{on_node(CA, names=NAMES, until=NOW + 9 * DAY).pem}\n{TRUSTED}",
            "FAIL",
            (
                f"10.9.0.10:5001 serves a certificate until {_until(9)} that is not {DECLARED.chain}: its service has "
                "not read the new one"
            ),
        ),
        (
            f"{GOOD.pem}\nVerify return code: 20 (unable to get local issuer certificate)",
            "FAIL",
            "10.9.0.10:5001 presents a certificate that this node does not trust",
        ),
        (
            (1, "connect:errno=111", ""),
            "FAIL",
            "10.9.0.10:5001 presents no certificate: connect:errno=111",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            "UNKNOWN",
            None,
        ),
    ],
)
def test_check_of_what_is_served(printed, status, evidence):
    host = FakeHost({**answer(GOOD), **THERE, S_CLIENT: printed})
    result = judged("site_ca", CHECKS, SERVED, SITE, HEAD, host)
    assert result.status == status, result
    assert evidence in (None, result.evidence)
    without = FakeHost({**answer(GOOD), S_CLIENT: printed})
    assert judged("site_ca", CHECKS, SERVED, SITE, HEAD, without).status == "UNKNOWN"


FOLDER, BUNDLE = HEAD.family.trust_folder, HEAD.family.trust_bundle
ANCHORS = asked(Anchors().command(FOLDER, BUNDLE, "rackwright-"))
DIGEST = hashlib.sha256(pem(CA.certificate).encode()).hexdigest()
OURS = f"anchor rackwright-site-ca.crt yes {DIGEST} regular file 644 root:root"
VERIFY = f"openssl verify -partial_chain {TRUST}"
TRUSTING = {
    **file(TRUST, CA.trusted, digest_only=True),
    ANCHORS: f"folder\n{OURS}\n",
    VERIFY: f"{TRUST}: OK",
}


@pytest.mark.parametrize(
    ("change", "status", "evidence"),
    [
        ({}, "PASS", f"1 certificates in {BUNDLE}"),
        (file(TRUST, "other", digest_only=True), "FAIL", f"{TRUST} is not as declared"),
        (
            file(TRUST, CA.trusted, "666", digest_only=True),
            "FAIL",
            f"{TRUST} is 666 root:root, not 644 root:root",
        ),
        ({ANCHORS: "folder\n"}, "FAIL", f"{FOLDER}/rackwright-site-ca.crt is missing"),
        (
            {ANCHORS: f"folder\n{OURS.replace(' yes ', ' no ')}\n"},
            "FAIL",
            f"{BUNDLE} lacks rackwright-site-ca.crt: programs do not trust it",
        ),
        (
            {ANCHORS: f"folder\n{OURS.replace(DIGEST, 'a' * 64)}\n"},
            "FAIL",
            f"{FOLDER}/rackwright-site-ca.crt is a different certificate, or other users than root can write it",
        ),
        (
            {ANCHORS: f"folder\n{OURS}\n{OURS.replace('site-ca', 'extra-1')}\n"},
            "FAIL",
            f"{FOLDER}/rackwright-extra-1.crt is trusted but not declared",
        ),
        (
            {VERIFY: (2, "", "error 18: self-signed certificate")},
            "FAIL",
            "programs of this node do not trust the site's CA: error 18: self-signed certificate",
        ),
        ({VERIFY: (127, "", "")}, "UNKNOWN", "openssl is missing"),
    ],
)
def test_check_of_trust(change, status, evidence):
    result = judged("site_ca", CHECKS, TRUSTS, SITE, HEAD, FakeHost({**TRUSTING, **change}))
    assert (result.status, result.evidence) == (status, evidence)


@pytest.mark.parametrize(("later", "status"), [(0, "PASS"), (3300, "WARN"), (3651, "FAIL")])
def test_check_of_the_ca(monkeypatch, later, status):
    monkeypatch.setattr(verify, "now", lambda: NOW + timedelta(days=later))
    assert judged("site_ca", CHECKS, LIVES, SITE, HEAD, FakeHost({})).status == status


def test_the_ca_is_unknown_without_its_key(monkeypatch):
    class Empty:
        def get(self, name):
            raise SecretsError(f"no {name}")

    monkeypatch.setattr(verify, "store_of", lambda cluster: Empty())
    assert judged("site_ca", CHECKS, LIVES, SITE, HEAD, FakeHost({})).status == "UNKNOWN"


def test_nodes_of_all_kinds_run_it():
    assert SiteCaOptions.applies_to == frozenset(NodeRole)
