"""Containers that run, images that travel, and drift of their settings that is found and repaired."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rackwright.errors import ExitCode
from tests.racks.containers.conftest import IMAGE, PASSWORD, PRIVATE_REGISTRY, Travelled, apply_role, bad
from tests.racks.site import Operations, Site, changed_by, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]

LIMITS = "'ulimit -l; ulimit -n'"
DECLARED_LIMITS = "4096\n16384\n"
"""KiB that may be locked, files that may be open."""


@pytest.mark.smoke
def test_a_second_apply_is_empty_and_all_claims_hold(site: Site):
    assert operations(site.plan(0)) == set()
    assert bad(site, ExitCode.CLEAN) == {}


@pytest.mark.smoke
def test_docker_runs_a_container_with_the_declared_limits(site: Site, image: Travelled):
    assert site.on("worker1", f"docker run --rm shell:1 /bin/sh -c {LIMITS}") == DECLARED_LIMITS
    inside = site.on("worker1", "docker run --rm shell:1 /bin/cat /proc/self/mounts")
    root = inside.splitlines()[0]
    assert root.startswith("overlay / overlay "), root
    assert "/scratch/docker/overlay2/" in root
    assert site.on("worker1", "ls /scratch/docker/image") == "overlay2\n"
    assert site.on("worker1", "ls -A /var/lib/docker 2>/dev/null || :") == ""


def test_an_image_travels_through_the_cache(image: Travelled):
    """Pushed to the site's registry by one name, pulled as an image of docker.io through the mirror."""
    assert image == Travelled(
        in_site_registry=["library/shell"],
        in_cache_before=[],
        in_cache_after=["library/shell"],
        pulled="docker.io/library/shell:1\nran\n",
    )


def test_podman_runs_the_image_of_the_cache(site: Site, image: Travelled):
    run = f"podman pull -q docker.io/{IMAGE} >&2; podman run --rm docker.io/{IMAGE} /bin/sh -c {LIMITS}"
    assert site.on("worker1", run) == DECLARED_LIMITS
    assert "overlay-layers" in site.on("worker1", "ls /scratch/podman").split()


def test_a_user_runs_it_without_root(site: Site, image: Travelled):
    """Ids inside are ada's own and her range outside, which follows from her uid."""
    script = (
        f"podman pull -q docker.io/{IMAGE}; podman run --rm docker.io/{IMAGE} /bin/cat /proc/self/uid_map"
    )
    said = site.on("worker1", f"su - ada -c '{script}' 2>/dev/null").splitlines()
    assert [line.split() for line in said[-2:]] == [["0", "3000", "1"], ["1", str(3000 * 65536), "65536"]]
    assert site.on("worker1", "stat -c %U /scratch/rootless/3000") == "ada\n"


def test_containerd_runs_it_next_to_docker(site: Site, image: Travelled):
    """One containerd: docker's containers in the namespace moby, these in their own."""
    name = f"docker.io/{IMAGE}"
    site.on("worker1", f"ctr images pull --hosts-dir /etc/containerd/certs.d {name}")
    # ctr asks for a share of the CPU by default, and not every machine has that controller to give
    said = site.on("worker1", f"ctr run --rm --cpu-shares 0 {name} one /bin/sh -c 'echo ran; ulimit -l'")
    assert said == "ran\n4096\n"
    assert set(site.on("worker1", "ctr namespaces list -q").split()) == {"default", "moby"}
    assert site.on("worker1", "ls /scratch/containerd").split().count("io.containerd.content.v1.content") == 1


@pytest.mark.smoke
def test_only_a_login_may_push_and_pull(site: Site, image: Travelled):
    """root has the declared login with each runtime; a user of docker has none and cannot read root's."""
    name = f"{PRIVATE_REGISTRY}/{IMAGE}"
    upload = f"http://{PRIVATE_REGISTRY}/v2/library/shell/blobs/uploads/"
    status = "curl -s -o /dev/null -w '%{http_code}'"
    site.on("worker1", f"docker import /tmp/shell.tar {name}")
    refused = site.on("worker1", f"docker --config /tmp/none push -q {name} 2>&1 || :")
    assert "no basic auth credentials" in refused
    assert "no basic auth credentials" in site.on("worker1", f"su - ada -c 'docker push -q {name}' 2>&1 || :")
    assert site.on("worker1", f"{status} -X POST {upload}") == "401"
    assert site.on("worker1", f"{status} -u ci:other -X POST {upload}") == "401"
    assert site.on("worker1", f"{status} http://{PRIVATE_REGISTRY}/v2/_catalog") == "401"

    site.on("worker1", f"docker push -q {name} && docker rmi {name}")
    catalog = site.on("worker1", f"curl -sf -u ci:{PASSWORD} http://{PRIVATE_REGISTRY}/v2/_catalog")
    assert json.loads(catalog) == {"repositories": ["library/shell"]}
    run = "/bin/sh -c 'echo ran'"
    assert site.on("worker1", f"docker pull -q {name} >&2 && docker run --rm {name} {run}") == "ran\n"
    assert site.on("worker1", f"podman pull -q {name} >&2 && podman run --rm {name} {run}") == "ran\n"
    site.on("worker1", f"ctr images pull --hosts-dir /etc/containerd/certs.d {name}")
    assert site.on("worker1", f"ctr run --rm --cpu-shares 0 {name} two {run}") == "ran\n"

    for path in (
        "/root/.docker/config.json",
        "/root/.config/containers/auth.json",
        f"/etc/containerd/certs.d/{PRIVATE_REGISTRY}/hosts.toml",
    ):
        assert site.on("worker1", f"stat -c %a:%U {path}") == "600:root\n"
        assert "denied" in site.on("worker1", f"su - ada -c 'cat {path}' 2>&1 || :")
    assert "denied" in site.on("head1", "su - ada -c 'cat /etc/docker/registry/private.htpasswd' 2>&1 || :")
    assert PASSWORD not in "".join(path.read_text() for path in site.outputs.iterdir())


def test_a_registry_that_no_longer_asks_for_its_login_is_found(site: Site):
    site.on(
        "head1",
        "sed -i '/^auth:/,/path:/d' /etc/docker/registry/private.yml; systemctl restart registry-cache@private",
    )
    found = bad(site, ExitCode.CHECK_FAILED, "registry_cache")
    assert {check for (_, check), status in found.items() if status == "FAIL"} == {
        "every registry answers",
        "every node that pulls images reaches the registries",
        "the registries' settings are as declared",
    }
    site.apply()
    assert bad(site, ExitCode.CLEAN, "registry_cache") == {}


@pytest.fixture
def docker(site: Site) -> Iterator[dict[str, Any]]:
    """Docker's section of the cluster file, for a test to change; nothing of it stays."""
    with site.declaring(lambda _: None):
        yield site.declared["roles"]["docker"]
    site.on("worker1", "docker rm -f sleeper || :")
    _apply_docker(site)


def test_a_reload_where_docker_takes_it_and_a_restart_where_not(
    site: Site, image: Travelled, docker: dict[str, Any]
):
    container = site.on("worker1", "docker run -d --name sleeper shell:1 /bin/sleep 36000").strip()
    pid = "systemctl show -p MainPID --value docker"
    before = site.on("worker1", pid)

    site.declare(lambda _: docker["registries"].update({"registry.lab.test": {"plain_http": True}}))
    assert _apply_docker(site) == [("running", "reloaded", False)]
    assert site.on("worker1", pid) == before
    site.on(  # it reads the file in its own time
        "worker1",
        "for _ in $(seq 240); do docker info --format '{{json .RegistryConfig.IndexConfigs}}' "
        "| grep -q registry.lab.test && exit 0; sleep 1; done; exit 1",
    )

    site.declare(lambda _: docker.update(log_max_files=5))
    assert _apply_docker(site) == [("running", "restarted", False)]
    assert site.on("worker1", pid) != before
    running = site.on("worker1", "docker ps -q --no-trunc")
    assert running.strip() == container  # it lived through the restart
    assert operations(site.plan(0, role="docker")) == set()


def _apply_docker(site: Site) -> list[tuple[str, str, bool]]:
    """Apply the docker role; (before, after, disruptive) of the units it touched."""
    return [
        (change.before, change.after, change.disruptive)
        for node in apply_role(site, "docker").nodes.values()
        for operation in node.operations
        for change in operation.changes
        if change.kind == "unit"
    ]


DRIFTS = {
    "head1": """
        sed -i 's/level: info/level: debug/' /etc/docker/registry/docker-io.yml
        systemctl stop registry-cache@site
    """,
    "worker1": """
        sed -i 's:/scratch/docker:/scratch/elsewhere:' /etc/docker/daemon.json
        systemctl reset-failed docker  # it was restarted a moment ago, and may be three times a minute
        systemctl restart docker
        gpasswd --add backup docker
        rm /etc/containerd/certs.d/docker.io/hosts.toml
        systemctl stop containerd
        sed -i 's:/scratch/podman:/scratch/nowhere:' /etc/containers/storage.conf
        echo mallory:196608000:65536 >>/etc/subuid
    """,
}
ROLES = ("registry_cache", "containerd", "docker", "podman")
FAILS = {
    ("head1", "every registry is running"),
    ("head1", "every registry answers"),
    ("head1", "the registries' settings are as declared"),
    ("head1", "every node that pulls images reaches the registries"),
    ("worker1", "daemon.json is as declared"),
    ("worker1", "Docker was started with its declared settings"),
    ("worker1", "Docker has its declared settings"),
    ("worker1", "only declared users are in group docker"),
    ("worker1", "containerd is running"),
    ("worker1", "containerd's files are as declared"),
    ("worker1", "Podman's files are as declared"),
    ("worker1", "Podman has its declared settings"),
    ("worker1", "every user has separate subordinate ids"),
}
NOT_KNOWN = {("worker1", "containerd's CRI plugin works")}
REPAIRS: Operations = {
    ("head1", "registry_cache", "Write the settings for registry docker-io"),
    ("head1", "registry_cache", "Start registry docker-io"),
    ("head1", "registry_cache", "Start registry site"),
    ("worker1", "containerd", "Write /etc/containerd/certs.d/docker.io/hosts.toml"),
    ("worker1", "containerd", "Start containerd with its settings"),
    ("worker1", "docker", "Write daemon.json"),
    ("worker1", "docker", "Start Docker with its settings"),
    ("worker1", "docker", "Set the members of group docker"),
    ("worker1", "podman", "Write /etc/containers/storage.conf"),
    ("worker1", "podman", "Write /etc/subuid"),
}


def test_drifts_are_found_and_repaired(site: Site, image: Travelled):
    for node, script in DRIFTS.items():
        site.on(node, script)
    found = bad(site, ExitCode.CHECK_FAILED, *ROLES)
    assert {key for key, status in found.items() if status == "FAIL"} == FAILS
    assert {key for key, status in found.items() if status == "UNKNOWN"} == NOT_KNOWN
    repaired = site.apply()
    assert "2 of 2 nodes are as declared" in repaired.out + repaired.err
    assert changed_by(site.runs()[-1]) == REPAIRS
    assert operations(site.plan(0)) == set()
    assert bad(site, ExitCode.CLEAN, *ROLES) == {}
    assert site.on("worker1", "docker run --rm shell:1 /bin/sh -c 'echo still here'") == "still here\n"
