"""The proxy role: options, what nodes and daemons get, and its checks."""

from __future__ import annotations

import shlex

import pytest

from rackwright.containers import RegistryAccess
from rackwright.model.proxy import proxy_variables
from rackwright.model.settings import Mirrors
from rackwright.osfamily.known import os_release
from rackwright.roles.containerd.options import ContainerdOptions
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.docker.settings import DROP_IN
from rackwright.roles.proxy import texts
from rackwright.roles.proxy.options import ProxyOptions, mirror_hosts
from rackwright.roles.proxy.verify import CHECKS, ENVIRON, LOGIN_SHELL, PROGRAM, fetching_units
from rackwright.roles.registry_cache.options import Registry, RegistryCacheOptions
from rackwright.roles.registry_cache.texts import UNIT_FILE
from tests.unit.roles.fake_facts import asked, files
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.sites import expected, head, site, worker

OPTIONS = ProxyOptions(http="http://proxy.example.com:3128/", no_proxy=(".example.org", "192.0.2.0/24"))
CACHE = RegistryCacheOptions(
    registries={
        "docker-io": Registry(port=5000, upstream="https://registry-1.docker.io"),
        "own": Registry(port=5001, anonymous=True),
    },
    plain_http=True,
)
PLAIN = {"10.9.0.10:5000": RegistryAccess(plain_http=True)}
ROLES = {
    "proxy": OPTIONS,
    "docker": DockerOptions(registries=PLAIN),
    "containerd": ContainerdOptions(registries=PLAIN),
    "registry_cache": CACHE,
}
CLUSTER = site(ROLES)
EL = site({"proxy": OPTIONS}, os=os_release("rocky-9"))
DIRECT = (
    "localhost,127.0.0.1,::1,test.example,.test.example,10.9.0.0/24,10.10.0.0/24,10.11.0.0/16,head1,"
    ".example.org,192.0.2.0/24"
)
VARIABLES = {
    "HTTP_PROXY": "http://proxy.example.com:3128",
    "HTTPS_PROXY": "http://proxy.example.com:3128",
    "NO_PROXY": DIRECT,
}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "Field required"),
        ({"http": "http://user:word@proxy.example.com:3128"}, "The URL contains credentials."),
        ({"http": "https://proxy.example.com:3128"}, "A proxy is reached by plain http."),
        ({"http": "http://proxy.example.com:3128/a"}, "The URL of a proxy has no path."),
        ({"http": "proxy.example.com:3128"}, "Not a valid http or https URL."),
        (
            {"http": "http://p:1", "no_proxy": ["a,b"]},
            "'a,b' is not a name, a domain or a network.",
        ),
        (
            {"http": "http://p:1", "probe": "a b"},
            "'a b' is not a valid host name: use labels of letters, digits and hyphens, joined by dots.",
        ),
        ({"http": "http://p:1", "user": "x"}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(ProxyOptions, given) == [sentence]


def test_every_network_of_the_cluster_is_reached_directly():
    assert OPTIONS.proxy_environment(CLUSTER, worker(CLUSTER)) == VARIABLES
    direct = OPTIONS.direct(CLUSTER)
    assert {str(network.cidr) for network in CLUSTER.inner_networks} < set(direct)
    assert len(set(direct)) == len(direct)


def test_hosts_of_mirrors_are_reached_directly():
    mirrors = Mirrors(
        apt="http://mirror.example.com/debian",
        pypi="http://mirror.example.com/pypi",
        apt_proxy="http://10.9.0.10:3142",
        files="http://head1.test.example/files",
        containers="registry.example.com:5000",
    )
    assert mirror_hosts(site(ROLES, mirrors=mirrors)) == ("mirror.example.com", "registry.example.com")


def test_another_proxy_for_https():
    both = ProxyOptions(http="http://a:1", https="http://b:2")
    assert both.urls == ("http://a:1", "http://b:2")
    assert both.proxy_environment(CLUSTER, head(CLUSTER))["HTTPS_PROXY"] == "http://b:2"


def test_apt_has_a_proxy_of_its_own():
    assert [text for _, text, _ in OPTIONS.warnings(CLUSTER)] == ["apt does not use this proxy."]
    assert list(OPTIONS.warnings(EL)) == []
    for mirrors in (Mirrors(apt_proxy="http://p:1"), Mirrors(apt="http://m/debian")):
        assert list(OPTIONS.warnings(site(ROLES, mirrors=mirrors))) == []


def test_login_shells_have_it():
    assert texts.profile(CLUSTER, worker(CLUSTER), OPTIONS) == expected("proxy/profile.sh")


def test_daemons_that_fetch_have_it():
    of_worker = ("/etc/systemd/system/containerd.service.d/rackwright.conf", DROP_IN)
    for which, paths in ((worker, of_worker), (head, (UNIT_FILE,))):
        plan = planned(CLUSTER, which(CLUSTER))
        assert plan.error is None
        for path in paths:
            text = content(plan, path)
            assert text is not None
            lines = [line for line in text.splitlines() if line.startswith("Environment=")]
            assert lines == [f'Environment="{name}={value}"' for name, value in VARIABLES.items()]
    assert fetching_units(worker(CLUSTER)) == ("docker.service", "containerd.service")
    assert fetching_units(head(CLUSTER)) == ("registry-cache@docker-io.service",)


def test_without_the_role_daemons_have_no_proxy():
    cluster = site({"docker": DockerOptions(registries=PLAIN)})
    assert proxy_variables(cluster, worker(cluster)) == ()
    text = content(planned(cluster, worker(cluster)), DROP_IN)
    assert text is not None
    assert "Environment" not in text


def test_dnf_has_it_unless_the_site_has_a_mirror():
    plan = planned(EL, worker(EL))
    assert plan.error is None
    (write,) = commands(plan, "Set dnf's proxy")
    assert write.endswith("/a proxy=http://proxy.example.com:3128' /etc/dnf/dnf.conf")
    mirrored = site({"proxy": OPTIONS}, os=os_release("rocky-9"), mirrors=Mirrors(dnf="http://m/rocky"))
    assert texts.dnf_proxy(mirrored, OPTIONS) == "none"
    assert "proxy=http" not in texts.dnf_write("none")


def test_nodes_with_apt_get_no_setting_of_dnf():
    names = [operation.name for operation in planned(CLUSTER, worker(CLUSTER)).operations]
    assert names[0] == "Set the proxy in login shells"
    assert "Set dnf's proxy" not in names


SHELLS, DAEMONS, DNF, ANSWERS = (check.name for check in CHECKS)
SHELL = "".join(f"{name}={value}\n{name.lower()}={value}\n" for name, value in VARIABLES.items())
DAEMON = "PATH=/usr/bin\n" + "".join(f"{name}={value}\n" for name, value in VARIABLES.items())
PROBE = f"python3 -IS -c {shlex.join([PROGRAM, 'proxy.example.com', '3128', 'example.com', '5'])}"
UNITS = (*fetching_units(worker(CLUSTER)), *fetching_units(head(CLUSTER)))
ENVIRONS = {unit: f"sh -c {shlex.quote(ENVIRON.format(unit=unit))}" for unit in UNITS}
HEALTHY = {
    **files({texts.PROFILE: texts.profile(CLUSTER, worker(CLUSTER), OPTIONS)}),
    **dict.fromkeys(ENVIRONS.values(), DAEMON),
    LOGIN_SHELL: SHELL,
    asked(texts.DNF_READ): "http://proxy.example.com:3128\n",
    PROBE: "HTTP/1.1 200 Connection established\n",
}

FAILURES = [
    (
        SHELLS,
        CLUSTER,
        {LOGIN_SHELL: SHELL.replace("http_proxy=http://proxy", "http_proxy=http://other")},
        "a login shell has http_proxy=http://other.example.com:3128, not http://proxy.example.com:3128",
    ),
    (
        SHELLS,
        CLUSTER,
        files({texts.PROFILE: None}),
        "/etc/profile.d/rackwright-proxy.sh is missing",
    ),
    (
        DAEMONS,
        CLUSTER,
        {ENVIRONS["containerd.service"]: "PATH=/usr/bin\n"},
        "containerd.service has HTTP_PROXY=, not http://proxy.example.com:3128",
    ),
    (DNF, EL, {asked(texts.DNF_READ): "none\n"}, "dnf's proxy is none, not http://proxy.example.com:3128"),
    (ANSWERS, CLUSTER, {PROBE: "! timed out\n"}, "http://proxy.example.com:3128 does not answer: timed out"),
    (
        ANSWERS,
        CLUSTER,
        {PROBE: "HTTP/1.1 407 Proxy Authentication Required\n"},
        "http://proxy.example.com:3128 requires a login (407), which rackwright does not support",
    ),
    (
        ANSWERS,
        CLUSTER,
        {PROBE: "SSH-2.0-OpenSSH_9.2\n"},
        "http://proxy.example.com:3128 does not speak HTTP: it answers 'SSH-2.0-OpenSSH_9.2'",
    ),
    (
        ANSWERS,
        CLUSTER,
        {PROBE: "\n"},
        "http://proxy.example.com:3128 closed the connection without an answer",
    ),
]


def test_every_check_was_seen_to_fail():
    assert {case[0] for case in FAILURES} == {check.name for check in CHECKS}


@pytest.mark.parametrize("cluster", [CLUSTER, EL])
@pytest.mark.parametrize("which", [head, worker])
def test_a_healthy_node_passes(cluster, which):
    names = claimed("proxy", CHECKS, which(cluster))
    assert names == ((SHELLS, DNF, ANSWERS) if cluster is EL else (SHELLS, DAEMONS, ANSWERS))
    for name in names:
        result = judged("proxy", CHECKS, name, cluster, which(cluster), FakeHost(HEALTHY))
        assert (result.status, bool(result.evidence)) == ("PASS", True), result.evidence


@pytest.mark.parametrize(("name", "cluster", "wrong", "evidence"), FAILURES)
def test_a_false_claim_fails(name, cluster, wrong, evidence):
    result = judged("proxy", CHECKS, name, cluster, worker(cluster), FakeHost({**HEALTHY, **wrong}))
    assert (result.status, result.evidence) == ("FAIL", evidence)


def test_a_proxy_that_does_not_reach_the_outside_is_a_warning():
    host = FakeHost({PROBE: "HTTP/1.1 503 No\n"})
    result = judged("proxy", CHECKS, ANSWERS, CLUSTER, worker(CLUSTER), host)
    assert (result.status, result.evidence) == (
        "WARN",
        "http://proxy.example.com:3128 answers but does not connect to example.com:443: HTTP/1.1 503 No",
    )


@pytest.mark.parametrize("name", [SHELLS, DAEMONS, DNF, ANSWERS])
def test_a_node_without_tools_is_unknown(name):
    assert judged("proxy", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({})).status == "UNKNOWN"


@pytest.mark.parametrize("answer", ["", "rubbish\n", (1, "", "no\n"), (124, "", "")])
@pytest.mark.parametrize("name", [SHELLS, DAEMONS, DNF, ANSWERS])
def test_unreadable_answers_never_pass(name, answer):
    host = FakeHost({}, always=answer)
    assert judged("proxy", CHECKS, name, CLUSTER, worker(CLUSTER), host).status in ("FAIL", "UNKNOWN")
