"""The registry_cache role: options, settings with their secrets, units, and its checks."""

from __future__ import annotations

from pathlib import Path

import bcrypt
import pytest
import yaml

from rackwright.containers import RegistryAccess, RegistryAuth
from rackwright.model.types import NodeRole
from rackwright.osfamily.known import os_release
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.registry_cache import texts
from rackwright.roles.registry_cache.options import Registry, RegistryCacheOptions
from rackwright.roles.registry_cache.verify import CHECKS
from tests.unit.roles.container_site import changed, never_passes, runtimes, sentences
from tests.unit.roles.fake_facts import file, unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.sites import expected, head, worker

OPTIONS = RegistryCacheOptions(
    registries={
        "docker-io": Registry(port=5000, upstream="https://registry-1.docker.io"),
        "site": Registry(port=5001, storage="/scratch/registry", anonymous=True),
    },
    plain_http=True,
)
ROBOT = RegistryAuth(user="robot", stored_as="registry_nvcr_io_password")
SITE = runtimes(docker=DockerOptions(), registry_cache=OPTIONS)
HEAD = head(SITE)


def secret(name):
    return f"{name} of the store"


OWN = {"port": 1, "anonymous": True}
AUTH = {"user": "ci", "stored_as": "registry_ci"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"registries": {"a": OWN, "b": OWN}},
            "The registries a and b have the same port 1.",
        ),
        ({"registries": {"A": OWN}}, "String should match pattern '^[a-z][a-z0-9-]{0,30}$'"),
        ({"registries": {"a": {"port": 1}}}, "Who may push to this registry is not declared."),
        (
            {"registries": {"a": {**OWN, "auth": AUTH}}},
            "`anonymous` is for a registry without `auth` and without an upstream.",
        ),
        (
            {"registries": {"a": {**OWN, "upstream": "https://docker.io"}}},
            "`anonymous` is for a registry without `auth` and without an upstream.",
        ),
        (
            {"registries": {"a": {"port": 1, "username": "me"}}},
            "`username` was removed: a login also names its password in the secrets store.",
        ),
        (
            {"registries": {"a": {"port": 1, "auth": {"user": "a:b", "stored_as": "c"}}}},
            "String should match pattern '^[A-Za-z0-9$][A-Za-z0-9@._$+-]{0,127}$'",
        ),
        (
            {"registries": {"a": {"port": 1, "upstream": "http://r"}}},
            "The upstream is reached by plain HTTP, where images can be changed in transit.",
        ),
        (
            {"registries": {"a": {"port": 1, "upstream": "https://r", "plain_http": True}}},
            "`plain_http` is for an upstream with an http URL.",
        ),
        (
            {"tls_key": "/etc/key", "plain_http": True},
            "tls_certificate and tls_key are given together or not at all.",
        ),
        (
            {"tls_key": "/etc/key", "tls_certificate": "/etc/cert", "plain_http": True},
            "A registry with a certificate cannot use plain HTTP.",
        ),
        (
            {"registries": {"a": {"port": 1, "upstream": "docker.io"}}},
            "String should match pattern '^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$'",
        ),
        (
            {"registries": {"a": {**OWN, "password": "x"}}},
            "Extra inputs are not permitted",
        ),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(RegistryCacheOptions, {"plain_http": True, **given}) == [sentence]


def test_problems():
    assert sentences(SITE, "registry_cache", "head1") == []
    assert sentences(
        runtimes(os=os_release("rocky-9"), registry_cache=OPTIONS), "registry_cache", "head1"
    ) == [
        (
            "",
            "rocky-9 has no docker-registry package, so head1 cannot run the cache.",
            "run the head on Debian or Ubuntu, or set `mirrors.containers` to a registry of the site",
        )
    ]
    elsewhere = runtimes(mirror="head1:5001", registry_cache=OPTIONS)
    assert sentences(elsewhere, "registry_cache", "head1") == [
        (
            "registries",
            "mirrors.containers is head1:5001, but no cache listens there.",
            "caches listen on 5000",
        )
    ]
    assert (
        sentences(runtimes(mirror="registry.site", registry_cache=OPTIONS), "registry_cache", "head1") == []
    )


def test_settings():
    assert texts.config_yml("docker-io", SITE, OPTIONS, secret) == expected("registry_cache/cache.yml")
    assert texts.config_yml("site", SITE, OPTIONS, secret) == expected("registry_cache/site.yml")
    login = RegistryCacheOptions(
        registries={"nvcr-io": Registry(port=5002, upstream="https://nvcr.io", auth=ROBOT, delete=False)},
        tls_certificate="/etc/ssl/registry.pem",
        tls_key="/etc/ssl/registry.key",
    )
    assert texts.config_yml("nvcr-io", SITE, login, secret) == expected("registry_cache/login.yml")
    assert texts.url("nvcr-io", SITE, login) == "https://10.9.0.10:5002"


def test_the_head_gets_a_unit_for_each():
    plan = planned(SITE, HEAD)
    assert changed(plan, "registry_cache", "package") == ["docker-registry"]
    assert changed(plan, "registry_cache", "unit") == [
        "docker-registry.service",
        "registry-cache@site.service",
        "registry-cache@site.service",
        "registry-cache@docker-io.service",
        "registry-cache@docker-io.service",
    ]
    assert content(plan, texts.UNIT_FILE) == expected("registry_cache/unit")
    assert "policy-rc.d" in commands(plan, "Install the registry")[0]


def test_nothing_anywhere_else():
    assert not changed(planned(SITE, worker(SITE)), "registry_cache", "package")
    assert claimed("registry_cache", CHECKS, worker(SITE)) == ()
    assert REACHED in claimed("registry_cache", CHECKS, HEAD)  # asked once, of the head


def test_secrets_stand_in_no_command():
    plan = planned(SITE, HEAD)
    assert "(secret registry_http_secret)" in content(plan, texts.conf_path("site"))
    for operation in plan.operations:
        assert not any("(secret" in command for command in operation.commands)


UNIT, OTHER = "registry-cache@docker-io.service", "registry-cache@site.service"
PACKAGED = "docker-registry.service"
CURL = "curl -s -o /dev/null -w '%{http_code}' --noproxy '*' --max-time 10 http://10.9.0.10:"
UP = {f"{CURL}5000/v2/": "200", f"{CURL}5001/v2/": "200"}
REACHED = "every node that pulls images reaches the registries"


class Store:
    def get(self, name):
        return type("Secret", (), {"reveal": lambda self: secret(name)})()


@pytest.fixture(autouse=True)
def _store(monkeypatch):
    monkeypatch.setattr("rackwright.roles.registry_cache.verify.store_of", lambda cluster: Store())


def files(mode="640", group="docker-registry", **other):
    answers = {}
    for name in OPTIONS.registries:
        text = other.get(name.replace("-", "_")) or texts.config_yml(name, SITE, OPTIONS, secret)
        path = texts.conf_path(name)
        answers |= file(path, text, mode, group=group, digest_only=True)
        answers |= file(texts.htpasswd_path(name), None, digest_only=True)
    return answers


def test_no_check_passes_without_knowing():
    never_passes("registry_cache", CHECKS, SITE, HEAD)


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (
            "every registry is running",
            {**unit(UNIT), **unit(OTHER)},
            "PASS",
            "docker-io, site: active and enabled",
        ),
        (
            "every registry is running",
            {**unit(UNIT), **unit(OTHER, active="failed")},
            "FAIL",
            "registry-cache@site.service is failed",
        ),
        (
            "every registry is running",
            {**unit(UNIT), **unit(OTHER, state="disabled")},
            "FAIL",
            "registry-cache@site.service is active but disabled: it does not start at boot",
        ),
        (
            "the package's own registry is off",
            unit(PACKAGED, active="inactive", state="masked", load="masked"),
            "PASS",
            "docker-registry.service is masked",
        ),
        (
            "the package's own registry is off",
            unit(PACKAGED),
            "FAIL",
            "docker-registry.service is enabled, not masked: it listens on every address",
        ),
        ("the registries' settings are as declared", files(), "PASS", "2 registries"),
        (
            "the registries' settings are as declared",
            files(docker_io="other"),
            "FAIL",
            "/etc/docker/registry/docker-io.yml is not as declared",
        ),
        (
            "the registries' settings are as declared",
            {**files(), **file("/etc/docker/registry/site.yml", None, digest_only=True)},
            "FAIL",
            "/etc/docker/registry/site.yml is missing",
        ),
        (
            "the registries' settings are as declared",
            files(mode="644", group="root"),
            "FAIL",
            "/etc/docker/registry/docker-io.yml is 644 root:root, not 640 root:docker-registry",
        ),
        ("every registry answers", UP, "PASS", "http://10.9.0.10:5000, http://10.9.0.10:5001"),
        (
            "every registry answers",
            {**UP, f"{CURL}5001/v2/": (7, "000", "")},
            "FAIL",
            "http://10.9.0.10:5001/v2/ does not answer (curl exited 7)",
        ),
        (
            "every registry answers",
            {**UP, f"{CURL}5001/v2/": "401"},
            "FAIL",
            "http://10.9.0.10:5001/v2/ answers with status 401, not 200",
        ),
        (
            "every registry answers",
            {**UP, f"{CURL}5001/v2/": (2, "", "unknown option")},
            "UNKNOWN",
            "cannot query http://10.9.0.10:5001/v2/: unknown option",
        ),
        (REACHED, UP, "PASS", "2 registries from 2 nodes"),
        (
            REACHED,
            {**UP, f"{CURL}5000/v2/": (28, "", "")},
            "FAIL",
            "gpu1: http://10.9.0.10:5000/v2/ does not answer (curl exited 28)",
        ),
    ],
)
def test_check(name, answers, status, evidence):
    found = judged("registry_cache", CHECKS, name, SITE, HEAD, FakeHost(answers))
    assert (found.status, found.evidence) == (status, evidence)


PRIVATE = RegistryCacheOptions(
    registries={
        "private": Registry(port=5002, auth=RegistryAuth(user="ci", stored_as="registry_ci")),
        "site": Registry(port=5001, anonymous=True),
    },
    tls_certificate="/etc/ssl/registry.pem",
    tls_key="/etc/ssl/registry.key",
)
PRIVATE_SITE = runtimes(
    docker=DockerOptions(
        on=(NodeRole.HEAD, NodeRole.WORKER), registries={"10.9.0.10:5002": RegistryAccess(ca=Path("ca.pem"))}
    ),
    registry_cache=PRIVATE,
)
PRIVATE_HEAD = head(PRIVATE_SITE)
HTPASSWD = texts.htpasswd_path("private")
USERS = texts.htpasswd("private", PRIVATE, secret)
TLS = "curl -s -o /dev/null -w '%{http_code}' --noproxy '*' --max-time 10 "
ASKED = {f"{TLS}https://10.9.0.10:5002/v2/": "401", f"{TLS}https://10.9.0.10:5001/v2/": "200"}


def test_the_users_of_a_registry():
    """bcrypt with a salt that is the same each time; another password, another hash."""
    name, _, digest = USERS.strip().partition(":")
    assert name == "ci"
    assert bcrypt.checkpw(b"registry_ci of the store", digest.encode())
    assert not bcrypt.checkpw(b"registry_ci of the stor", digest.encode())
    assert texts.htpasswd("private", PRIVATE, secret) == USERS
    assert texts.htpasswd("private", PRIVATE, lambda name: f"other {name}") != USERS
    assert texts.htpasswd("site", PRIVATE, secret) is None
    config = texts.config_yml("private", PRIVATE_SITE, PRIVATE, secret)
    assert yaml.safe_load(config)["auth"] == {"htpasswd": {"realm": "private", "path": HTPASSWD}}
    assert "registry_ci" not in config
    assert "auth" not in yaml.safe_load(texts.config_yml("site", PRIVATE_SITE, PRIVATE, secret))


def test_they_are_readable_by_the_registry_alone_and_shown_nowhere():
    alone = runtimes(registry_cache=PRIVATE)
    plan = planned(alone, head(alone))
    (change,) = (
        change for operation in plan.operations for change in operation.changes if change.target == HTPASSWD
    )
    assert change.after is not None
    assert change.after.startswith("file 640 root:docker-registry, content (")
    assert not any(
        "registry_ci" in command for operation in plan.operations for command in operation.commands
    )


def test_which_passwords_the_site_supplies():
    assert PRIVATE.supplied_secrets == ("registry_ci",)
    assert OPTIONS.supplied_secrets == ()


def test_a_password_in_the_clear_is_a_warning():
    plain = PRIVATE.model_copy(update={"plain_http": True})
    assert list(PRIVATE.warnings(PRIVATE_SITE)) == []
    assert [(path, message) for path, message, _ in plain.warnings(PRIVATE_SITE)] == [
        ("registries.private.auth", "The password of ci crosses the network in the clear.")
    ]


def private_files(users=USERS, mode="640"):
    answers = file(HTPASSWD, users, mode, group="docker-registry", digest_only=True)
    answers |= file(texts.htpasswd_path("site"), None, digest_only=True)
    for name in PRIVATE.registries:
        text = texts.config_yml(name, PRIVATE_SITE, PRIVATE, secret)
        answers |= file(texts.conf_path(name), text, "640", group="docker-registry", digest_only=True)
    return answers


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        ("the registries' settings are as declared", private_files(), "PASS", "2 registries"),
        (
            "the registries' settings are as declared",
            private_files("ci:$2b$08$other"),
            "FAIL",
            f"{HTPASSWD} is not as declared",
        ),
        (
            "the registries' settings are as declared",
            private_files(mode="644"),
            "FAIL",
            f"{HTPASSWD} is 644 root:docker-registry, not 640 root:docker-registry",
        ),
        (
            "the registries' settings are as declared",
            {**private_files(), **file(texts.htpasswd_path("site"), "eve:x", digest_only=True)},
            "FAIL",
            f"{texts.htpasswd_path('site')} exists but is not declared",
        ),
        (
            "every registry answers",
            {
                f"{TLS}--cacert /etc/docker/certs.d/10.9.0.10:5002/ca.crt https://10.9.0.10:5002/v2/": "401",
                **ASKED,
            },
            "PASS",
            "https://10.9.0.10:5002, https://10.9.0.10:5001",
        ),
        (
            "every registry answers",
            {
                f"{TLS}--cacert /etc/docker/certs.d/10.9.0.10:5002/ca.crt https://10.9.0.10:5002/v2/": "200",
                **ASKED,
            },
            "FAIL",
            "https://10.9.0.10:5002/v2/ answers without a login",
        ),
        (
            "every registry answers",
            {
                f"{TLS}--cacert /etc/docker/certs.d/10.9.0.10:5002/ca.crt https://10.9.0.10:5002/v2/": "503",
                **ASKED,
            },
            "FAIL",
            "https://10.9.0.10:5002/v2/ answers with status 503, not 401",
        ),
    ],
)
def test_check_of_a_registry_with_a_login(name, answers, status, evidence):
    found = judged("registry_cache", CHECKS, name, PRIVATE_SITE, PRIVATE_HEAD, FakeHost(answers))
    assert (found.status, found.evidence) == (status, evidence)
