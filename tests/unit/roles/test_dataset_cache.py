"""The dataset_cache role: mistakes, files, checks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rackwright.model.storage import Filesystem, FilesystemKind, FilesystemPurpose
from rackwright.roles.dataset_cache import paths, texts
from rackwright.roles.dataset_cache.options import DatasetCacheOptions
from rackwright.roles.dataset_cache.verify import CHECKS
from rackwright.roles.docker.options import DockerOptions
from tests.unit.roles.fake_facts import file, unit
from tests.unit.roles.fake_host import FakeHost, claimed, content, errors_in, judged, planned
from tests.unit.roles.scratch_site import SCRATCH, layout, scratch_site
from tests.unit.roles.sites import worker

DATA = Filesystem(
    name="data", kind=FilesystemKind.NFS, purpose=FilesystemPurpose.DATA, path="/data", nodes=("gpu1", "gpu2")
)
IMAGES = {
    "filesystem": "data",
    "folder": "sets/images",
    "size_gib": 100,
    "keep": True,
    "checksums": "SHA256SUMS",
}
TEXT = {"remote": "store:corpus/text", "size_gib": 50}


def declared(**changes: Any) -> dict[str, Any]:
    return {"limit_gib": 200, "datasets": {"images": IMAGES, "text": TEXT}, **changes}


def made(**changes: Any) -> DatasetCacheOptions:
    return DatasetCacheOptions.model_validate(declared(**changes))


def there(options: DatasetCacheOptions, **site: Any):
    return scratch_site(**{"filesystems": (SCRATCH, DATA), "dataset_cache": options, **site})


def problems(options: DatasetCacheOptions, **site: Any):
    return list(options.problems(there(options, **site)))


ONE_SOURCE = "A dataset has one source: `filesystem` and `folder`, or `remote`."


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ({"size_gib": 1}, ONE_SOURCE),
        ({"filesystem": "data", "size_gib": 1}, ONE_SOURCE),
        ({**IMAGES, "remote": "a:b"}, ONE_SOURCE),
        (
            {**IMAGES, "folder": "../etc"},
            "String should match pattern '^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$'",
        ),
        (
            {"remote": "-P:x", "size_gib": 1},
            "String should match pattern '^[A-Za-z0-9_][A-Za-z0-9_.-]*:[A-Za-z0-9_][A-Za-z0-9._/-]*$'",
        ),
        ({**TEXT, "size_gib": 0}, "Input should be greater than or equal to 1"),
    ],
)
def test_mistakes(dataset, message):
    assert errors_in(DatasetCacheOptions, declared(datasets={"images": dataset})) == [message]


def test_names_of_datasets_are_folders_and_units():
    found = errors_in(DatasetCacheOptions, declared(datasets={"../x": TEXT}))
    assert found == ["String should match pattern '^[a-z][a-z0-9-]{0,30}$'"]


def test_mistakes_that_need_the_cluster():
    assert problems(made()) == []
    assert problems(made(), filesystems=(SCRATCH,)) == [
        ("datasets.images.filesystem", "gpu1 does not use a shared filesystem data.", "it uses: none")
    ]
    assert problems(made(limit_gib=60)) == [
        ("datasets.images.size_gib", "images takes 100 GiB, but the cache has only 60.", None),
        ("limit_gib", "Kept datasets take 100 GiB, but the cache has only 60.", None),
    ]
    assert problems(made(), without=("gpu1", "gpu2"))[0][1] == (
        "No worker uses a filesystem of kind local and purpose scratch."
    )
    assert problems(made(project_id=7)) == []
    assert problems(made(project_id=7), layout_of=layout(mount_options=["noatime"])) == [
        ("project_id", "/scratch of gpu1 is mounted without project quotas.", None)
    ]
    second = SCRATCH.model_copy(update={"name": "slow", "path": "/slow"})
    assert problems(made(), filesystems=(SCRATCH, second, DATA)) == [
        ("filesystem", "gpu1 uses several scratch filesystems: fast, slow.", "name one of them")
    ]


def test_folders_of_other_roles_in_the_cache():
    assert problems(made(), docker=DockerOptions(data_root="/scratch/datasets/docker")) == [
        (
            "",
            "`docker.data_root` is /scratch/datasets/docker, inside the dataset cache.",
            "give it a separate folder",
        )
    ]


SITE = there(made())
NODE = worker(SITE)


def test_files():
    plan = planned(SITE, NODE)
    assert json.loads(content(plan, paths.SETTINGS) or "") == {
        "root": "/scratch",
        "folder": "datasets",
        "limit_gib": 200,
        "project": 0,
        "group": None,
        "rclone_config": "/root/.config/rclone/rclone.conf",
        "fetch_seconds": 43200,
        "datasets": {
            "images": {
                "mount": "/data",
                "from": "/data/sets/images",
                "gib": 100,
                "keep": True,
                "checksums": "SHA256SUMS",
            },
            "text": {"mount": None, "from": "store:corpus/text", "gib": 50, "keep": False, "checksums": None},
        },
    }
    assert content(plan, paths.COMMAND) == (
        "#!/bin/sh\n# Written by rackwright; changes made here are undone.\n"
        'exec /usr/bin/python3 -IS /usr/local/libexec/rackwright-dataset.py "$@"\n'
    )
    service = content(plan, "/etc/systemd/system/rackwright-dataset-fill.service")
    assert service == (
        "# Written by rackwright; changes made here are undone.\n"
        "[Unit]\nDescription=Fetch the datasets that are kept on /scratch\nRequiresMountsFor=/scratch\n"
        "Wants=network-online.target\nAfter=network-online.target remote-fs.target\n\n"
        "[Service]\nType=oneshot\nExecStart=/usr/bin/python3 -IS /usr/local/libexec/rackwright-dataset.py fill\n"
        "TimeoutStartSec=43800\nNice=19\nIOSchedulingClass=idle\nNoNewPrivileges=yes\n"
    )


NAMES = tuple(check.name for check in CHECKS)
FILES, TIMER, KEPT, CREDENTIALS, LIMIT = NAMES


def result(name: str, host: FakeHost) -> tuple[str, str]:
    found = judged("dataset_cache", CHECKS, name, SITE, NODE, host)
    return found.status.value, found.evidence


def test_which_are_claimed():
    assert claimed("dataset_cache", CHECKS, NODE) == NAMES
    plain = there(made(datasets={"images": {**IMAGES, "keep": False}}))
    assert claimed("dataset_cache", CHECKS, worker(plain)) == (FILES, LIMIT)


def test_files_and_timer():
    good = {}
    for path, (text, mode) in texts.files(NODE, made()).items():
        good |= file(path, text, mode)
    assert result(FILES, FakeHost(good))[0] == "PASS"
    assert result(FILES, FakeHost({**good, **file(paths.SETTINGS, "{}\n")}))[0] == "FAIL"
    assert result(FILES, FakeHost({}))[0] == "UNKNOWN"
    assert result(TIMER, FakeHost(unit(paths.TIMER)))[0] == "PASS"
    assert result(TIMER, FakeHost(unit(paths.TIMER, active="inactive")))[0] == "FAIL"
    assert result(TIMER, FakeHost({}))[0] == "UNKNOWN"


@pytest.mark.parametrize(
    ("given", "status", "evidence"),
    [
        (("[x]\n", "600"), "PASS", "/root/.config/rclone/rclone.conf is 600 root"),
        (("[x]\n", "644"), "FAIL", None),
        (("[x]\n", "600", "ada"), "FAIL", None),
        ((None,), "FAIL", "/root/.config/rclone/rclone.conf is missing: rclone finds no store"),
        (None, "UNKNOWN", None),
    ],
)
def test_credentials(given, status, evidence):
    host = FakeHost(file("/root/.config/rclone/rclone.conf", *given, digest_only=True) if given else {})
    found = result(CREDENTIALS, host)
    assert found[0] == status, found
    assert evidence in (None, found[1])


def listing(images: str, size: float = 10.0, **more: str) -> FakeHost:
    states = {"images": images, "text": "missing", **more}
    found = {
        "datasets": {name: {"state": state, "bytes": 0} for name, state in states.items()},
        "bytes": int(size * 2**30),
    }
    return FakeHost({f"{paths.RUN} list": json.dumps(found)})


@pytest.mark.parametrize(
    ("name", "host", "status", "evidence"),
    [
        (KEPT, listing("complete"), "PASS", "images"),
        (
            KEPT,
            listing("incomplete"),
            "WARN",
            "images is not complete yet; see `journalctl -u rackwright-dataset-fill.service`",
        ),
        (
            KEPT,
            listing("missing"),
            "FAIL",
            "images is missing; see `journalctl -u rackwright-dataset-fill.service`",
        ),
        (KEPT, listing("odd"), "UNKNOWN", "the state of images is unknown"),
        (KEPT, FakeHost({}), "UNKNOWN", None),
        (KEPT, FakeHost({f"{paths.RUN} list": "{}"}), "UNKNOWN", None),
        (LIMIT, listing("complete"), "PASS", "10.0 of 200 GiB: images"),
        (LIMIT, listing("missing", 0), "PASS", "0.0 of 200 GiB: nothing yet"),
        (LIMIT, listing("complete", 201), "FAIL", "the cache holds 201.0 GiB, but 200 are declared"),
        (
            LIMIT,
            listing("complete", old="complete"),
            "WARN",
            "old is in the cache but not declared; the timer removes it when no process uses it",
        ),
        (LIMIT, FakeHost({f"{paths.RUN} list": "[]"}), "UNKNOWN", None),
        (
            LIMIT,
            FakeHost({f"{paths.RUN} list": (1, "", "rackwright-dataset: nothing is mounted on /scratch")}),
            "UNKNOWN",
            None,
        ),
    ],
)
def test_contents(name, host, status, evidence):
    found = result(name, host)
    assert found[0] == status, found
    assert evidence in (None, found[1])


@pytest.mark.parametrize(
    ("images", "kernel", "status", "evidence"),
    [
        ("complete", {"kernel_kib": 200 << 20}, "PASS", "10.0 of 200 GiB: images"),
        (
            "complete",
            {"kernel_kib": 100 << 20},
            "WARN",
            "the kernel limits the cache to 100.0 GiB, but 200 are declared; the next fetch sets the limit",
        ),
        (
            "complete",
            {"kernel_kib": 0},
            "WARN",
            "the kernel does not limit the cache, but 200 are declared; the next fetch sets the limit",
        ),
        (
            "complete",
            {"kernel_silent": "xfs_quota exited 1"},
            "UNKNOWN",
            "the kernel's limit on the cache is unknown: xfs_quota exited 1",
        ),
        ("complete", {}, "UNKNOWN", None),
        ("missing", {"kernel_kib": 0}, "PASS", "0.0 of 200 GiB: nothing yet"),
    ],
)
def test_the_limit_that_the_kernel_keeps(images, kernel, status, evidence):
    site = there(made(project_id=7))
    host = listing(images, 10 if images == "complete" else 0)
    host = FakeHost(
        {f"{paths.RUN} list": json.dumps({**json.loads(str(host.replies[f"{paths.RUN} list"])), **kernel})}
    )
    found = judged("dataset_cache", CHECKS, LIMIT, site, worker(site), host)
    assert found.status.value == status, found
    assert evidence in (None, found.evidence)


def test_a_list_of_many_files_has_time():
    """`list` sizes every file of every dataset, whichever check asks for it."""
    seconds = {check.name: check.timeout_seconds for check in CHECKS}
    assert seconds[KEPT] == seconds[LIMIT] == 180


def test_without_a_timer_the_operator_removes_what_is_not_declared():
    site = there(made(datasets={"images": {**IMAGES, "keep": False}}))
    found = judged("dataset_cache", CHECKS, LIMIT, site, worker(site), listing("complete", old="incomplete"))
    assert found.status.value == "WARN"
    assert "; `/usr/local/bin/rackwright-dataset fill` removes it when no process uses it" in found.evidence
