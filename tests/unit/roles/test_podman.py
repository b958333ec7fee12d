"""The podman role: options, subordinate ids, files, packages, and its checks."""

from __future__ import annotations

import json
import tomllib
from ipaddress import IPv4Network

import pytest

from rackwright.osfamily.known import RELEASES, os_release
from rackwright.roles.access.options import AccessOptions, AdminUser
from rackwright.roles.podman import texts
from rackwright.roles.podman.options import HIGHEST_UID, SUBIDS, PodmanOptions
from rackwright.roles.podman.verify import CHECKS
from tests.unit.roles.container_site import (
    ADA,
    MIRROR,
    PLAIN,
    changed,
    never_passes,
    runtimes,
    sentences,
    user_folder_answers,
)
from tests.unit.roles.fake_facts import file, files
from tests.unit.roles.fake_host import FakeHost, commands, errors_in, judged, planned
from tests.unit.roles.sites import expected, worker

OPTIONS = PodmanOptions(
    graph_root="/scratch/podman",
    rootless_root="/scratch/rootless",
    registries=PLAIN,
    pids_limit=0,
)
SITE = runtimes(podman=OPTIONS)
GPU = worker(SITE)
DECLARED = texts.declared(SITE, GPU, OPTIONS)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"pids_limit": -1}, "Input should be greater than or equal to 0"),
        (
            {"subnet_pools": [{"base": "172.20.0.0/24", "size": 16}]},
            "No subnet of /16 fits into the subnet pool 172.20.0.0/24.",
        ),
        ({"storage_driver": "overlay2"}, "Input should be 'overlay', 'btrfs' or 'vfs'"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(PodmanOptions, given) == [sentence]


def test_problems():
    assert sentences(SITE, "podman") == []
    overlapping = PodmanOptions(subnet=IPv4Network("10.9.0.0/16"))
    assert sentences(runtimes(podman=overlapping), "podman") == [
        (
            "subnet",
            (
                "The range 10.9.0.0/16 overlaps the network management, 10.9.0.0/24: nodes with containers would no "
                "longer reach it."
            ),
            "choose a private range that no site network uses",
        )
    ]
    access = AccessOptions(users=(ADA, AdminUser(name="big", uid=HIGHEST_UID + 1)))
    assert sentences(runtimes(podman=OPTIONS, access=access), "podman") == [
        (
            "",
            "User big has uid 65535, and subordinate ids are only there for uids up to 65534.",
            "give users of podman lower uids, or keep the role off these nodes (`on`)",
        )
    ]


def test_subordinate_ids_follow_from_the_uid_alone():
    users = (AdminUser(name="eve", uid=HIGHEST_UID), AdminUser(name="bob", uid=1000), ADA)
    made = runtimes(podman=OPTIONS, access=AccessOptions(users=users))
    assert texts.subids(worker(made)) == "bob:65536000:65536\nada:196608000:65536\neve:4294836224:65536\n"
    assert (HIGHEST_UID + 1) * SUBIDS <= (1 << 32) - 1


def test_files():
    for path, name in (
        (texts.STORAGE, "storage.conf"),
        (texts.CONTAINERS, "containers.conf"),
        (texts.REGISTRIES, "registries.conf"),
    ):
        assert DECLARED[path] == expected(f"podman/{name}")
    plain = PodmanOptions(memlock_mib=64)
    made = runtimes(os=os_release("ubuntu-22.04"), mirror=None, podman=plain)
    found = texts.declared(made, worker(made), plain)
    assert found[texts.CONTAINERS] == expected("podman/containers-3.4.conf")
    assert found[texts.REGISTRIES] == expected("podman/registries-plain.conf")
    assert found[texts.STORAGE] == expected("podman/storage-plain.conf")
    for path in (texts.STORAGE, texts.CONTAINERS, texts.REGISTRIES):
        tomllib.loads(found[path])
        tomllib.loads(DECLARED[path])


@pytest.mark.parametrize("os", RELEASES.values())
def test_packages(os):
    made = runtimes(os=os, podman=PodmanOptions())
    assert changed(planned(made, worker(made)), "podman", "package") == list(texts.packages(os))


FILES = files(DECLARED)
ASK = "podman info --format json"
INFO = {
    "host": {"cgroupManager": "systemd", "networkBackend": "netavark", "ociRuntime": {"name": "crun"}},
    "store": {"graphRoot": "/scratch/podman", "graphDriverName": "overlay"},
    "registries": {"docker.io": {"Mirrors": [{"Location": MIRROR, "Insecure": True}]}},
    "version": {"Version": "5.4.2"},
}
IDS = texts.subids(GPU)
SETTINGS, PULLS = "Podman has its declared settings", "Podman pulls through the declared mirror"
OWN_IDS, MAY_USE = "every user has separate subordinate ids", "users can use their subordinate ids"


def info(**changes):
    return {ASK: json.dumps({**INFO, **changes})}


def ids(uid=IDS, gid=IDS):
    return {**file("/etc/subuid", uid), **file("/etc/subgid", gid)}


def helpers(mode, caps):
    answers = {}
    for tool in ("newuidmap", "newgidmap"):
        answers[f"sh -c 'command -v {tool}'"] = f"/usr/bin/{tool}\n"
        answers[f"stat -L -c %a /usr/bin/{tool}"] = f"{mode}\n"
        if caps is not None:
            answers[f"getcap /usr/bin/{tool}"] = f"/usr/bin/{tool} {caps.format(tool[3])}\n"
    return answers


def test_no_check_passes_without_knowing():
    never_passes("podman", CHECKS, SITE, GPU)


@pytest.mark.parametrize(
    ("answers", "status", "evidence"),
    [
        ({}, "PASS", "1 folders in /scratch/rootless"),
        (
            {"mode": "1777"},
            "FAIL",
            "/scratch/rootless is a directory with 1777 root, not a directory with 755 root",
        ),
        (
            {"found": ("3001 700 d 3000",)},
            "FAIL",
            "/scratch/rootless/3000 has mode 700 and belongs to uid 3001, not 700 and uid 3000",
        ),
        (
            {"found": ("3000 777 d 3000",)},
            "FAIL",
            "/scratch/rootless/3000 has mode 777 and belongs to uid 3000, not 700 and uid 3000",
        ),
        (
            {"found": ("3000 777 l 3000",)},
            "FAIL",
            "/scratch/rootless/3000 has mode 777 and belongs to uid 3000, not 700 and uid 3000",
        ),
        (
            {"found": ("3000 700 d 3000", "3001 755 d 3000.not-of-3000.1795")},
            "PASS",
            "1 folders in /scratch/rootless",
        ),
        ({"found": ("rubbish",)}, "UNKNOWN", "the folders in /scratch/rootless cannot be read: 'rubbish'"),
    ],
)
def test_users_folders(answers, status, evidence):
    found = answers.pop("found", ("3000 700 d 3000",))
    host = FakeHost(user_folder_answers(GPU, texts.folders(OPTIONS), *found, **answers))
    result = judged("podman", CHECKS, "users' Podman folders are private", SITE, GPU, host)
    assert (result.status, result.evidence) == (status, evidence)


def test_no_place_in_which_users_make_folders_themselves():
    plan = planned(SITE, GPU)
    modes = {change.target: change.after for entry in plan.operations for change in entry.changes}
    assert modes["/scratch/rootless"] == "directory 755 root:root"
    (make,) = commands(plan, "Make the folders of declared users")
    assert make == "for uid in 3000; do /usr/libexec/rackwright/user-folders-podman $uid || exit; done"


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        ("Podman's files are as declared", FILES, "PASS", "5 files"),
        (
            "Podman's files are as declared",
            {**FILES, **file("/etc/subuid", IDS + "eve:100000:65536\n")},
            "FAIL",
            "/etc/subuid is not as declared: eve:100000:65536",
        ),
        (SETTINGS, info(), "PASS", "podman 5.4.2: overlay in /scratch/podman"),
        (
            SETTINGS,
            info(store={"graphRoot": "/var/lib/containers/storage", "graphDriverName": "overlay"}),
            "FAIL",
            "podman's graphRoot is '/var/lib/containers/storage', not '/scratch/podman'",
        ),
        (
            SETTINGS,
            info(host={**INFO["host"], "networkBackend": "cni"}),
            "FAIL",
            "podman's network backend is 'cni', not 'netavark'",
        ),
        (SETTINGS, info(store={}), "UNKNOWN", "podman does not report its store.graphRoot"),
        (PULLS, info(), "PASS", f"docker.io through {MIRROR}"),
        (
            PULLS,
            info(registries={"search": ["docker.io"]}),
            "FAIL",
            f"podman's mirror of docker.io is [], not ['{MIRROR}']",
        ),
        (PULLS, {ASK: "{}"}, "UNKNOWN", "podman does not report its registries"),
        (OWN_IDS, ids(), "PASS", "1 users, 65536 ids each"),
        (
            OWN_IDS,
            ids(gid=IDS + "eve:196608000:65536\n"),
            "FAIL",
            "eve and ada share ids in /etc/subgid",
        ),
        (
            OWN_IDS,
            ids("ada:100000:65536\n"),
            "FAIL",
            "ada's range in /etc/subuid is (100000, 65536), not (196608000, 65536)",
        ),
        (OWN_IDS, ids(None), "FAIL", "/etc/subuid is missing"),
        (OWN_IDS, ids("ada:x\n"), "UNKNOWN", "/etc/subuid has an unreadable line: 'ada:x'"),
        (MAY_USE, helpers("4755", ""), "PASS", "newuidmap and newgidmap have their rights"),
        (MAY_USE, helpers("755", "cap_set{}id=ep"), "PASS", "newuidmap and newgidmap have their rights"),
        (
            MAY_USE,
            helpers("755", ""),
            "FAIL",
            "/usr/bin/newuidmap has mode 755 and no capabilities: users get no subordinate ids",
        ),
        (
            MAY_USE,
            helpers("755", None),
            "UNKNOWN",
            "/usr/bin/newuidmap is not setuid, and getcap is not there to ask for capabilities",
        ),
    ],
)
def test_check(name, answers, status, evidence):
    found = judged("podman", CHECKS, name, SITE, GPU, FakeHost(answers))
    assert (found.status, found.evidence) == (status, evidence)
