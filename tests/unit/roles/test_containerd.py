"""The containerd role: options, both versions of its configuration, registries, and its checks."""

from __future__ import annotations

import tomllib

import pytest

from rackwright.osfamily.known import os_release
from rackwright.roles.containerd import texts
from rackwright.roles.containerd.options import ContainerdOptions
from rackwright.roles.containerd.verify import CHECKS
from rackwright.roles.docker.options import DockerOptions
from tests.unit.roles.container_site import MIRROR, PLAIN, changed, never_passes, runtimes, sentences
from tests.unit.roles.fake_facts import file, files, unit
from tests.unit.roles.fake_host import FakeHost, errors_in, judged, planned
from tests.unit.roles.sites import expected, worker

OPTIONS = ContainerdOptions(root="/scratch/containerd", registries=PLAIN)
SITE = runtimes(containerd=OPTIONS)
GPU = worker(SITE)
NVIDIA = ContainerdOptions(
    source="docker",
    nvidia_runtime="/usr/bin/nvidia-container-runtime",
    sandbox_image="registry.site/pause:3.10",
    cdi=False,
    memlock_mib=64,
    systemd_cgroup=False,
)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"release": "1.4"}, "Input should be '1.7' or '2'"),
        ({"sandbox_image": "a b"}, "String should match pattern '^[a-z0-9][A-Za-z0-9./:@_-]*$'"),
        ({"root": "/a b"}, "Not a valid absolute path: letters, digits, `.`, `_` and `-` between slashes."),
        ({"root": "/a/../etc"}, "The path contains `.` or `..`."),
        ({"nofile": 10}, "Input should be greater than or equal to 1024"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(ContainerdOptions, given) == [sentence]


def test_where_it_cannot_come_from():
    assert sentences(runtimes(os=os_release("rhel-9"), containerd=OPTIONS), "containerd") == [
        (
            "source",
            "gpu1 runs containerd, but rhel-9 has no package for it.",
            "set `source: docker` for Docker's own repository, or use podman",
        )
    ]
    both = runtimes(containerd=ContainerdOptions(source="docker"), docker=DockerOptions())
    assert sentences(both, "containerd") == [
        (
            "source",
            (
                "gpu1 would get containerd from docker and docker from distribution; their containerd packages conflict."
            ),
            "use the same source for containerd and docker",
        )
    ]
    assert sentences(SITE, "containerd") == []


def test_the_configuration_of_each_release():
    assert texts.config_toml(GPU, OPTIONS) == expected("containerd/config-1.7.toml")
    assert texts.config_toml(GPU, NVIDIA) == expected("containerd/config-2.toml")
    assert (NVIDIA.effective_release, OPTIONS.effective_release) == ("2", "1.7")


def test_the_other_files():
    declared = texts.declared(SITE, GPU, OPTIONS, str)
    for path, name in (
        ("/etc/containerd/certs.d/docker.io/hosts.toml", "docker.io.toml"),
        (f"/etc/containerd/certs.d/{MIRROR}/hosts.toml", "insecure.toml"),
        (texts.CRICTL, "crictl.yaml"),
        (texts.DROP_IN, "unlimited.conf"),
    ):
        assert declared[path] == expected(f"containerd/{name}")
    assert texts.unit_conf(NVIDIA) == expected("containerd/limited.conf")


def test_everything_is_toml():
    for options in (OPTIONS, NVIDIA):
        for path, text in texts.declared(SITE, GPU, options, str).items():
            if path.endswith(".toml"):
                tomllib.loads(text)


@pytest.mark.parametrize(
    ("os", "source", "packages"),
    [
        (os_release("debian-12"), "distribution", ["containerd"]),
        (os_release("ubuntu-24.04"), "docker", ["curl", "gpg", "containerd.io"]),
        (os_release("rocky-9"), "docker", ["gnupg2", "containerd.io"]),
    ],
)
def test_packages(os, source, packages):
    made = runtimes(os=os, containerd=ContainerdOptions(source=source))
    assert changed(planned(made, worker(made)), "containerd", "package") == packages


FILES = files(texts.declared(SITE, GPU, OPTIONS, str))
VERSION = "containerd --version"
DUMP = "containerd config dump"
PLUGINS = "ctr plugins ls"
CONFIG = texts.config_toml(GPU, OPTIONS)
LISTED = """\
TYPE                                   ID                       PLATFORMS      STATUS
io.containerd.snapshotter.v1           overlayfs                linux/amd64    ok
io.containerd.grpc.v1                  cri                      linux/amd64    ok
"""


def test_no_check_passes_without_knowing():
    never_passes("containerd", CHECKS, SITE, GPU)


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (
            "containerd is running",
            unit("containerd.service"),
            "PASS",
            "containerd.service is active and enabled",
        ),
        (
            "containerd is running",
            unit("containerd.service", active="inactive"),
            "FAIL",
            "containerd.service is inactive",
        ),
        (
            "containerd is running",
            unit("containerd.service", state="disabled"),
            "FAIL",
            "containerd.service is active but disabled: it does not start at boot",
        ),
        ("containerd's files are as declared", FILES, "PASS", "5 files"),
        (
            "containerd's files are as declared",
            {**FILES, **file("/etc/containerd/certs.d/docker.io/hosts.toml", None)},
            "FAIL",
            "/etc/containerd/certs.d/docker.io/hosts.toml is missing",
        ),
        (
            "containerd's release matches its configuration",
            {VERSION: "containerd github.com/containerd/containerd 1.7.24~ds1 1.7.24~ds1-6+deb13u1\n"},
            "PASS",
            "containerd 1.7",
        ),
        (
            "containerd's release matches its configuration",
            {VERSION: "containerd github.com/containerd/containerd/v2 v2.1.5 fcd43222d6b0\n"},
            "FAIL",
            "containerd 2.1 is installed, but its configuration is for 1.7",
        ),
        (
            "containerd's release matches its configuration",
            {VERSION: "what?\n"},
            "UNKNOWN",
            "`containerd --version` printed 'what?'",
        ),
        (
            "containerd has its declared settings",
            {DUMP: CONFIG},
            "PASS",
            "data in /scratch/containerd, SystemdCgroup true",
        ),
        (
            "containerd has its declared settings",
            {DUMP: CONFIG.replace("SystemdCgroup = true", "SystemdCgroup = false")},
            "FAIL",
            "containerd's SystemdCgroup is False, not True",
        ),
        (
            "containerd has its declared settings",
            {DUMP: CONFIG.replace("/scratch", "/var/lib")},
            "FAIL",
            "containerd's root is '/var/lib/containerd', not '/scratch/containerd'",
        ),
        (
            "containerd has its declared settings",
            {DUMP: "version = 2\n"},
            "UNKNOWN",
            "`containerd config dump` has no readable CRI settings: 'plugins'",
        ),
        ("containerd's CRI plugin works", {PLUGINS: LISTED}, "PASS", "the CRI plugin is ok"),
        (
            "containerd's CRI plugin works",
            {
                PLUGINS: LISTED.replace(
                    "cri                      linux/amd64    ok", "cri  linux/amd64  error"
                )
            },
            "FAIL",
            "containerd's CRI plugin is in state error",
        ),
        (
            "containerd's CRI plugin works",
            {PLUGINS: "\n".join(LISTED.splitlines()[:2])},
            "FAIL",
            "containerd runs without its CRI plugin",
        ),
    ],
)
def test_check(name, answers, status, evidence):
    found = judged("containerd", CHECKS, name, SITE, GPU, FakeHost(answers))
    assert (found.status, found.evidence) == (status, evidence)
