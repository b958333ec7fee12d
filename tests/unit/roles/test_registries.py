"""What docker, containerd and podman get to reach declared registries: plain HTTP, certificates, logins."""

from __future__ import annotations

import json
import tomllib
from base64 import b64decode
from pathlib import Path

import pytest

from rackwright.containers import RegistryAccess, RegistryAuth, registry_problems
from rackwright.engine.supplied_secrets import refuse_missing
from rackwright.errors import SecretsError
from rackwright.roles.containerd import texts as containerd
from rackwright.roles.containerd.options import ContainerdOptions
from rackwright.roles.containerd.verify import CHECKS as CONTAINERD_CHECKS
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.docker.settings import LOGINS as DOCKER_LOGINS
from rackwright.roles.docker.settings import logins
from rackwright.roles.docker.verify import CHECKS as DOCKER_CHECKS
from rackwright.roles.podman.options import PodmanOptions
from rackwright.roles.podman.texts import LOGINS as PODMAN_LOGINS
from rackwright.roles.podman.verify import CHECKS as PODMAN_CHECKS
from rackwright.secrets.store import store_of
from tests.unit.roles.container_site import runtimes
from tests.unit.roles.fake_facts import file
from tests.unit.roles.fake_host import FakeHost, judged, planned
from tests.unit.roles.sites import worker

NAME = "registry.example.com:5000"
AUTH = RegistryAuth(user="ci", stored_as="registry_ci")
REGISTRIES = {
    NAME: RegistryAccess(ca=Path("ca.pem"), auth=AUTH),
    "plain.example.com": RegistryAccess(plain_http=True),
}
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
ROLES = {
    "docker": (DockerOptions, "/etc/docker/certs.d", DOCKER_LOGINS, DOCKER_CHECKS),
    "podman": (PodmanOptions, "/etc/containers/certs.d", PODMAN_LOGINS, PODMAN_CHECKS),
}


def secret(name):
    return f"{name} of the store"


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A site of one role beside a certificate; its secrets are those of `secret`."""
    (tmp_path / "ca.pem").write_text(PEM)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def made(role, kind, registries=REGISTRIES, **more):
        site = runtimes(**{role: kind(registries=registries)}, **more)
        site = site.model_copy(update={"path": tmp_path / "demo.yaml"})
        store_of(site).put("registry_ci", secret("registry_ci"))
        return site

    return made


def files_of(plan):
    return {
        change.target: change
        for operation in plan.operations
        for change in operation.changes
        if change.kind == "file"
    }


@pytest.mark.parametrize("role", ROLES)
def test_the_certificate_and_the_login_of_root(there, role):
    kind, certificates, login, _ = ROLES[role]
    site = there(role, kind)
    found = files_of(planned(site, worker(site)))
    certificate = found[f"{certificates}/{NAME}/ca.crt"]
    assert (certificate.content, certificate.after) == (PEM, "file 644 root:root")
    assert found[login].after is not None
    assert found[login].after.startswith("file 600 root:root, content (")


def test_no_login_no_file(there):
    site = there("docker", DockerOptions, {"plain.example.com": RegistryAccess(plain_http=True)})
    assert DOCKER_LOGINS not in files_of(planned(site, worker(site)))


def test_what_docker_and_podman_read():
    options = DockerOptions(registries={**REGISTRIES, "docker.io": RegistryAccess(auth=AUTH)})
    auths = json.loads(logins(options, secret) or "")["auths"]
    assert set(auths) == {NAME, "https://index.docker.io/v1/"}
    assert b64decode(auths[NAME]["auth"]) == b"ci:registry_ci of the store"
    assert set(json.loads(options.auth_json(secret) or "")["auths"]) == {NAME, "docker.io"}
    assert options.supplied_secrets == ("registry_ci", "registry_ci")


def test_what_containerd_reads(there):
    site = there("containerd", ContainerdOptions)
    options = worker(site).options["containerd"]
    found = containerd.hosts(site, worker(site), options, secret)
    host = tomllib.loads(found[f"/etc/containerd/certs.d/{NAME}/hosts.toml"])
    header = "Basic Y2k6cmVnaXN0cnlfY2kgb2YgdGhlIHN0b3Jl"
    assert host == {
        "server": f"https://{NAME}",
        "host": {
            f"https://{NAME}": {
                "capabilities": ["pull", "resolve", "push"],
                "ca": f"/etc/containerd/certs.d/{NAME}/ca.crt",
                "header": {"Authorization": header},
            }
        },
    }
    plain = tomllib.loads(found["/etc/containerd/certs.d/plain.example.com/hosts.toml"])
    assert plain["server"] == "http://plain.example.com"
    assert containerd.with_logins(site, options) == {f"/etc/containerd/certs.d/{NAME}/hosts.toml"}


def test_containerd_keeps_the_file_with_the_login_for_root(there):
    site = there("containerd", ContainerdOptions)
    found = files_of(planned(site, worker(site)))
    modes = {path: change.after for path, change in found.items() if path.endswith("hosts.toml")}
    assert modes[f"/etc/containerd/certs.d/{NAME}/hosts.toml"].startswith("file 600 root:root, content (")
    assert modes["/etc/containerd/certs.d/plain.example.com/hosts.toml"] == "file 644 root:root"
    assert found[f"/etc/containerd/certs.d/{NAME}/ca.crt"].content == PEM


def test_the_mirror_of_docker_io_with_a_login(there):
    site = there("containerd", ContainerdOptions, mirror=NAME)
    options = worker(site).options["containerd"]
    found = tomllib.loads(
        containerd.hosts(site, worker(site), options, secret)["/etc/containerd/certs.d/docker.io/hosts.toml"]
    )
    assert found["server"] == "https://registry-1.docker.io"
    assert found["host"][f"https://{NAME}"]["header"]["Authorization"].startswith("Basic ")
    assert "/etc/containerd/certs.d/docker.io/hosts.toml" in containerd.with_logins(site, options)


def test_no_command_and_no_plan_shows_a_password(there):
    for role, (kind, *_) in {**ROLES, "containerd": (ContainerdOptions,)}.items():
        site = there(role, kind)
        for operation in planned(site, worker(site)).operations:
            reported = f"{operation.commands} {operation.changes}"
            assert "of the store" not in reported
            assert "Y2k6cmVnaXN0cnlfY2" not in reported  # base64 of ci:registry_ci


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("change", "status", "evidence"),
    [
        ({}, "PASS", "1 certificates, logins"),
        ({"pem": "other"}, "FAIL", "ca.crt is not as declared"),
        ({"pem": None}, "FAIL", "ca.crt is missing"),
        ({"login": "{}"}, "FAIL", "is not as declared"),
        ({"mode": "644"}, "FAIL", "is 644 root:root, not 600 root:root"),
    ],
)
def test_the_check(there, role, change, status, evidence):
    kind, certificates, login, checks = ROLES[role]
    site = there(role, kind)
    options = worker(site).options[role]
    answers = {
        **file(f"{certificates}/{NAME}/ca.crt", change.get("pem", PEM), digest_only=True),
        **file(f"{certificates}/{NAME}/ca.crt", change.get("pem", PEM)),
        **file(
            login, change.get("login", options.auth_json(secret)), change.get("mode", "600"), digest_only=True
        ),
    }
    name = f"{role.capitalize()}'s registry certificates and logins are as declared"
    found = judged(role, checks, name, site, worker(site), FakeHost(answers))
    assert found.status == status, found
    assert evidence in found.evidence
    assert judged(role, checks, name, site, worker(site), FakeHost({})).status == "UNKNOWN"


def test_containerds_check(there):
    site = there("containerd", ContainerdOptions)
    node = worker(site)
    options = node.options["containerd"]
    declared = containerd.declared(site, node, options, secret)
    login = f"/etc/containerd/certs.d/{NAME}/hosts.toml"

    def judge(mode):
        answers = file(options.ca_path(NAME), PEM, digest_only=True)
        for path, text in declared.items():
            answers |= file(path, text, mode if path == login else "644", digest_only=True)
        name = "containerd's files are as declared"
        return judged("containerd", CONTAINERD_CHECKS, name, site, node, FakeHost(answers))

    assert judge("600").status == "PASS"
    found = judge("644")
    assert (found.status, found.evidence) == ("FAIL", f"{login} is 644 root:root, not 600 root:root")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "Cannot read ca.pem: no such file or directory."),
        ("hello", "ca.pem must contain only certificates."),
        (PEM + "-----BEGIN PRIVATE KEY-----\n", "ca.pem must contain only certificates."),
        ("\xff", "Cannot read ca.pem: it is not text."),
        (PEM, None),
    ],
)
def test_certificates_that_are_none(there, tmp_path, content, message):
    site = there("docker", DockerOptions)
    (tmp_path / "ca.pem").unlink()
    if content is not None:
        (tmp_path / "ca.pem").write_text(content)
    found = list(registry_problems(worker(site).options["docker"], site))
    assert [one[1] for one in found] == ([] if message is None else [message])
    assert all(one[0] == f'registries["{NAME}"].ca' for one in found)


def test_a_password_in_the_clear_is_a_warning():
    options = DockerOptions(
        registries={"r": RegistryAccess(plain_http=True, auth=AUTH), NAME: REGISTRIES[NAME]}
    )
    assert [(path, message) for path, message, _ in options.warnings(None)] == [
        ('registries["r"].auth', "The password of ci crosses the network unencrypted.")
    ]


def test_containerd_cannot_log_in_to_docker_io(there):
    site = there("containerd", ContainerdOptions, {"docker.io": RegistryAccess(auth=AUTH)})
    (found,) = worker(site).options["containerd"].problems(site)
    assert found[0] == 'registries["docker.io"].auth'


def test_a_run_without_a_supplied_password_is_refused(there, tmp_path):
    """Not generated: another password than the registry's would be on every node, and in no message."""
    site = there("docker", DockerOptions)
    refuse_missing(site, site.nodes, None)
    other = site.model_copy(update={"path": tmp_path / "other.yaml", "name": "other"})
    with pytest.raises(SecretsError) as caught:
        refuse_missing(other, other.nodes, None)
    assert caught.value.message.startswith(
        "The secrets store lacks registry_ci, a password that the role docker"
    )
    assert caught.value.hint == "rackwright secrets put registry_ci other.yaml"
    assert not (tmp_path / "other.secrets.age").exists()
    refuse_missing(other, other.nodes, {"base"})  # a run of another role does not need it


def test_a_session_asks_before_it_connects(there, monkeypatch):
    from rackwright.engine import session

    site = there("docker", DockerOptions).model_copy(update={"path": Path("/nowhere/demo.yaml")})
    asked = []
    monkeypatch.setattr(session, "refuse_missing", lambda *given: asked.append(given) or _refuse())
    with pytest.raises(SecretsError), session.Session(site):
        pass
    assert asked


def _refuse():
    raise SecretsError("not there")
