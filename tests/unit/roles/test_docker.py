"""The docker role: options, daemon.json, reload or restart, packages, and its checks."""

from __future__ import annotations

import json
from ipaddress import IPv4Network

import pytest

from rackwright.containers import AddressPool
from rackwright.model.types import NodeRole
from rackwright.osfamily.known import os_release
from rackwright.roles.containerd.options import ContainerdOptions
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.docker.settings import (
    STARTED_READ,
    daemon_json,
    declared,
    loses_containers,
    needs_restart,
)
from rackwright.roles.docker.verify import CHECKS
from tests.unit.roles.container_site import MIRROR, PLAIN, changed, never_passes, runtimes, sentences
from tests.unit.roles.fake_facts import answer, file, unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.sites import expected, head, worker

OPTIONS = DockerOptions(users=("ada",), data_root="/scratch/docker", registries=PLAIN)
SITE = runtimes(docker=OPTIONS)
GPU = worker(SITE)
JSON = daemon_json(SITE, GPU, OPTIONS)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"data_root": "scratch"},
            "Not a valid absolute path: letters, digits, `.`, `_` and `-` between slashes.",
        ),
        ({"registries": {"http://r": {}}}, "Not a valid registry."),
        (
            {"insecure_registries": ["r"]},
            "`insecure_registries` no longer exists: declare plain HTTP for each registry.",
        ),
        (
            {"registries": {"r": {"plain_http": True, "ca": "ca.pem"}}},
            "A registry cannot have both `ca` and `plain_http`: remove one of them.",
        ),
        ({"default_runtime": "nvidia"}, "The default runtime nvidia is not among the runtimes."),
        ({"runtimes": {"runc": "/usr/bin/runc"}}, "runc is docker's own runtime and is not declared."),
        (
            {"address_pools": [{"base": "172.20.0.0/24", "size": 16}]},
            "No subnet of /16 fits into the address pool 172.20.0.0/24.",
        ),
        ({"memlock_mib": 0}, "memlock_mib must be a number of MiB of at least 1, or `unlimited`."),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(DockerOptions, given) == [sentence]


def test_ranges_that_hide_a_network():
    pools = (
        AddressPool(base=IPv4Network("172.17.0.0/16")),
        AddressPool(base=IPv4Network("10.8.0.0/14"), size=20),
    )
    assert sentences(runtimes(docker=DockerOptions(address_pools=pools)), "docker") == [
        (
            "address_pools[1].base",
            (
                f"The range 10.8.0.0/14 overlaps the network {name}, {cidr}: nodes with containers would no longer "
                "reach it."
            ),
            "choose a private range that no site network uses",
        )
        for name, cidr in (
            ("management", "10.9.0.0/24"),
            ("storage", "10.10.0.0/24"),
            ("fabric", "10.11.0.0/16"),
        )
    ]


def test_no_docker_in_el():
    assert sentences(runtimes(os=os_release("rocky-9"), docker=DockerOptions()), "docker") == [
        (
            "source",
            "gpu1 runs docker, but rocky-9 has no package for it.",
            "set `source: docker` for Docker's own repository, or use podman",
        )
    ]
    assert (
        sentences(runtimes(os=os_release("rocky-9"), docker=DockerOptions(source="docker")), "docker") == []
    )


def test_one_containerd_on_a_node():
    both = runtimes(docker=DockerOptions(source="docker"), containerd=ContainerdOptions())
    assert sentences(both, "docker") == [
        (
            "source",
            (
                "gpu1 would get docker from docker and containerd from distribution; their containerd packages conflict."
            ),
            "use the same source for docker and containerd",
        )
    ]
    apart = runtimes(
        docker=DockerOptions(source="docker", on=(NodeRole.HEAD,)), containerd=ContainerdOptions()
    )
    assert sentences(apart, "docker", "head1") == []


def test_members_are_users_of_the_site():
    assert sentences(runtimes(docker=DockerOptions(users=("ada", "eve"))), "docker") == [
        (
            "users[1]",
            "gpu1 has no user eve in the access role.",
            "declare the user under `roles.access.users`",
        )
    ]


def test_daemon_json():
    assert expected("docker/gpu.json") == JSON
    plain = DockerOptions(
        log_driver="journald",
        memlock_mib=64,
        runtimes={"nvidia": "/usr/bin/nvidia-container-runtime"},
        default_runtime="nvidia",
        live_restore=False,
        iptables=False,
        cdi=False,
    )
    assert daemon_json(runtimes(mirror=None, docker=plain), head(SITE), plain) == expected(
        "docker/plain.json"
    )


def test_a_mirror_without_tls_is_named_as_insecure():
    assert declared(SITE, GPU, DockerOptions())["registry-mirrors"] == [f"https://{MIRROR}"]
    assert declared(SITE, GPU, OPTIONS)["registry-mirrors"] == [f"http://{MIRROR}"]


@pytest.mark.parametrize(
    ("changes", "restart"),
    [
        ({}, False),
        ({"registry-mirrors": []}, False),
        ({"insecure-registries": []}, False),
        ({"live-restore": False}, False),
        ({"features": {}}, False),
        ({"data-root": "/var/lib/docker"}, True),
        ({"log-opts": {}}, True),
        ({"default-ulimits": {}}, True),
        ({"debug": True}, True),
    ],
)
def test_what_a_reload_takes(changes, restart):
    settings = declared(SITE, GPU, OPTIONS)
    assert needs_restart(json.dumps({**settings, **changes}), settings) is restart


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({}, False),
        ({"log-opts": {}}, False),
        ({"data-root": "/var/lib/docker"}, True),
        ({"storage-driver": "vfs"}, True),
        ({"live-restore": False}, True),
    ],
)
def test_what_containers_do_not_live_through(changes, lost):
    settings = declared(SITE, GPU, OPTIONS)
    assert loses_containers(json.dumps({**settings, **changes}), settings) is lost
    without = declared(SITE, GPU, DockerOptions(live_restore=False))
    assert loses_containers(json.dumps(without), without) is True


@pytest.mark.parametrize("started", [None, "", "half a {", "[]"])
def test_what_is_not_known_is_a_restart(started):
    assert needs_restart(started, declared(SITE, GPU, OPTIONS)) is True


@pytest.mark.parametrize(
    ("os", "source", "packages"),
    [
        (os_release("debian-12"), "distribution", ["docker.io", "containerd", "iptables"]),
        (os_release("debian-13"), "distribution", ["docker.io", "containerd", "iptables", "docker-cli"]),
        (os_release("ubuntu-24.04"), "distribution", ["docker.io", "containerd", "iptables"]),
        (
            os_release("ubuntu-22.04"),
            "docker",
            ["curl", "gpg", "docker-ce", "docker-ce-cli", "containerd.io"],
        ),
        (os_release("rocky-9"), "docker", ["gnupg2", "docker-ce", "docker-ce-cli", "containerd.io"]),
    ],
)
def test_packages(os, source, packages):
    made = runtimes(os=os, docker=DockerOptions(source=source))
    plan = planned(made, worker(made))
    assert changed(plan, "docker", "package") == packages
    assert changed(planned(made, head(made)), "docker", "package") == []


def test_dockers_own_archive():
    made = runtimes(
        os=os_release("ubuntu-24.04"), docker=DockerOptions(source="docker", repository="http://m/docker/")
    )
    plan = planned(made, worker(made))
    assert content(plan, "/etc/apt/sources.list.d/docker.sources") == expected("docker/docker.sources")
    (fetch,) = commands(plan, "Fetch the key of Docker's packages")
    assert "http://m/docker/ubuntu/gpg" in fetch
    assert '[ "$found" = 9DC858229FC7DD38854AE2D88D81803C0EBFCD88 ]' in fetch
    made = runtimes(os=os_release("rocky-9"), docker=DockerOptions(source="docker"))
    plan = planned(made, worker(made))
    assert content(plan, "/etc/yum.repos.d/docker-ce.repo") == expected("docker/docker-ce.repo")
    (fetch,) = commands(plan, "Fetch the key of Docker's packages")
    assert "https://download.docker.com/linux/centos/gpg" in fetch
    assert '[ "$found" = 060A61C51B558A7F742B77AAC52FEB6B621E9F35 ]' in fetch


def test_the_group_is_set_whole():
    plan = planned(SITE, GPU)
    assert commands(plan, "Set the members of group docker") == ("gpasswd --members ada docker",)
    no_members = runtimes(docker=DockerOptions())
    assert commands(planned(no_members, worker(no_members)), "Set the members of group docker") == (
        "gpasswd --members '' docker",
    )


CONF = "/etc/docker/daemon.json"
ASK = "docker info --format '{{json .}}'"
GROUP = "getent group docker"
INFO = {
    "ServerVersion": "26.1.5",
    "DockerRootDir": "/scratch/docker",
    "Driver": "overlay2",
    "LoggingDriver": "json-file",
    "CgroupDriver": "systemd",
    "LiveRestoreEnabled": True,
    "DefaultRuntime": "runc",
    "Runtimes": {"runc": {"path": "runc"}},
    "RegistryConfig": {
        "Mirrors": [f"http://{MIRROR}/"],
        "IndexConfigs": {MIRROR: {"Secure": False}, "docker.io": {"Secure": True}},
    },
}


def info(**changes):
    return {ASK: json.dumps({**INFO, **changes})}


def test_no_check_passes_without_knowing():
    never_passes("docker", CHECKS, SITE, GPU)


def test_nothing_is_claimed_of_nodes_without_it():
    assert claimed("docker", CHECKS, head(SITE)) == ()


SETTINGS, REGISTRIES = (
    "Docker has its declared settings",
    "Docker has the declared mirror and insecure registries",
)
MEMBERS = "only declared users are in group docker"


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        ("Docker is running", unit("docker.service"), "PASS", "docker.service is active and enabled"),
        (
            "Docker is running",
            unit("docker.service", active="failed"),
            "FAIL",
            "docker.service is failed",
        ),
        (
            "Docker is running",
            unit("docker.service", state="disabled"),
            "FAIL",
            "docker.service is active but disabled: it does not start at boot",
        ),
        ("daemon.json is as declared", file(CONF, JSON), "PASS", "/etc/docker/daemon.json"),
        (
            "daemon.json is as declared",
            file(CONF, JSON.replace("50m", "5m")),
            "FAIL",
            '/etc/docker/daemon.json is not as declared: "max-size": "5m"',
        ),
        (
            "daemon.json is as declared",
            file(CONF, None),
            "FAIL",
            "/etc/docker/daemon.json is missing",
        ),
        (
            "Docker was started with its declared settings",
            answer(STARTED_READ, JSON),
            "PASS",
            "the daemon was started with the declared settings",
        ),
        (
            "Docker was started with its declared settings",
            answer(STARTED_READ, JSON.replace("50m", "5m")),
            "FAIL",
            "the docker daemon was started with settings that differ from the declared ones",
        ),
        (
            "Docker was started with its declared settings",
            answer(STARTED_READ, ""),
            "UNKNOWN",
            "Answer of cat /run/docker-started-with.json: the node printed nothing",
        ),
        (SETTINGS, info(), "PASS", "docker 26.1.5: overlay2 in /scratch/docker"),
        (
            SETTINGS,
            info(DockerRootDir="/var/lib/docker"),
            "FAIL",
            "docker's DockerRootDir is '/var/lib/docker', not '/scratch/docker'",
        ),
        (SETTINGS, info(Driver="vfs"), "FAIL", "docker's Driver is 'vfs', not 'overlay2'"),
        (SETTINGS, info(ServerVersion=""), "UNKNOWN", "the docker daemon does not answer"),
        (SETTINGS, {ASK: '{"ServerVersion": "26"}'}, "UNKNOWN", "docker does not report its DockerRootDir"),
        (REGISTRIES, info(), "PASS", f"mirror http://{MIRROR}, insecure: {MIRROR}"),
        (
            REGISTRIES,
            info(RegistryConfig={"Mirrors": [], "IndexConfigs": {}}),
            "FAIL",
            f"docker's mirror is [], not ['http://{MIRROR}']",
        ),
        (
            REGISTRIES,
            info(RegistryConfig={**INFO["RegistryConfig"], "IndexConfigs": {"x": {"Secure": False}}}),
            "FAIL",
            f"docker's list of insecure registries is ['x'], not ['{MIRROR}']",
        ),
        (REGISTRIES, info(RegistryConfig=None), "UNKNOWN", "docker does not report its registries"),
        (MEMBERS, {GROUP: "docker:x:103:ada\n"}, "PASS", "ada: each is root on this node"),
        (
            MEMBERS,
            {GROUP: "docker:x:103:ada,eve\n"},
            "FAIL",
            "eve may become root through group docker but is not declared",
        ),
        (MEMBERS, {GROUP: "docker:x:103:\n"}, "FAIL", "ada is not in group docker"),
        (MEMBERS, {GROUP: "docker\n"}, "UNKNOWN", "getent did not print the group docker"),
    ],
)
def test_check(name, answers, status, evidence):
    found = judged("docker", CHECKS, name, SITE, GPU, FakeHost(answers))
    assert (found.status, found.evidence) == (status, evidence)


def test_a_runtime_that_docker_does_not_know():
    options = OPTIONS.model_copy(update={"runtimes": {"nvidia": "/usr/bin/nvidia-container-runtime"}})
    made = runtimes(docker=options)
    found = judged("docker", CHECKS, SETTINGS, made, worker(made), FakeHost(info()))
    assert (found.status, found.evidence) == ("FAIL", "docker has no runtime nvidia")
