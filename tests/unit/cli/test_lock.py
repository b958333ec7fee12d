"""rackwright lock."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.unit.lock.clusters import write_cluster
from tests.unit.roles.driver_sites import FINGERPRINT, KEY

UBUNTU = "ubuntu-24.04"


@pytest.fixture
def file(tmp_path):
    return write_cluster(tmp_path, {"dgx-h100": UBUNTU, "hgx-b200": UBUNTU}, "{source: nvidia}")


def test_write_check_and_change(rackwright, file, tmp_path):
    lock = tmp_path / "demo.lock.yaml"
    assert rackwright("lock", file, "--check").status == 2
    assert not lock.exists()
    first = rackwright("lock", file)
    assert (first.status, first.err) == (0, "")
    assert first.out.splitlines()[-1] == "demo.lock.yaml: written (tables of 2026-11-20, 2026-11-23)"
    assert "hgx-b200 on ubuntu-24.04 from nvidia: driver 580.173.02 (open modules)" in first.out
    text = lock.read_text()
    assert rackwright("lock", file).out.splitlines()[-1].startswith("demo.lock.yaml: unchanged")
    assert rackwright("lock", file, "--check").status == 0
    file.write_text(file.read_text().replace("{source: nvidia}", '{driver: {branch: "595"}}'))
    result = rackwright("lock", file, "--check")
    assert result.status == 2
    assert "is not what would be solved now" in result.out
    assert lock.read_text() == text


def test_the_lock_file(rackwright, file, tmp_path):
    rackwright("lock", file)
    data = yaml.safe_load((tmp_path / "demo.lock.yaml").read_text())
    assert (data["version"], data["cluster"]) == (1, "demo")
    assert [group["sku"] for group in data["groups"]] == ["dgx-h100", "hgx-b200"]
    h100 = data["groups"][0]
    assert h100["driver_version"] == "580.173.02"
    assert h100["packages"]["nvidia-fabricmanager"] == "580.173.02-*"
    named = [name for part in h100["components"].values() for name in part]
    assert sorted(named) == sorted(h100["packages"])


def test_json(rackwright, file):
    result = rackwright("lock", file, "--json")
    data = json.loads(result.out)
    assert (result.status, data["version"], data["state"], data["refused"]) == (0, 1, "written", [])
    assert data["tables"]["offers"] == "2026-11-23"
    assert [group["sku"] for group in data["groups"]] == ["dgx-h100", "hgx-b200"]


def test_refused_writes_nothing_and_gives_every_reason(rackwright, tmp_path):
    file = write_cluster(tmp_path, {"hgx-b200": "debian-13", "t4-4x": "debian-12"}, "{source: distribution}")
    result = rackwright("lock", file)
    assert result.status == 1
    assert not (tmp_path / "demo.lock.yaml").exists()
    assert (
        "  - HGX B200 needs driver >= 570.133.20; Debian's own repository ends at 550.163.01.\n"
        "    hint: set `gpu_stack.source: nvidia`\n"
    ) in result.out
    assert "needs nvlsm" in result.out
    data = json.loads(rackwright("lock", file, "--json").out)
    assert data["state"] == "refused"
    assert len(data["refused"][0]["reasons"]) == 5


def test_nothing_to_lock(rackwright, tmp_path):
    file = write_cluster(tmp_path, {"dgx-h100": UBUNTU}, None)
    result = rackwright("lock", file)
    assert result.status == 1
    assert result.err.startswith("error: demo.yaml has no section gpu_stack to lock.\n")


def test_show_tells_where_the_wish_comes_from(rackwright, file):
    values = {entry["path"]: entry for entry in json.loads(rackwright("show", file, "--json").out)["values"]}
    assert values["gpu_stack.source"]["origin"]["kind"] == "file"
    assert values["gpu_stack.security"] == {
        "path": "gpu_stack.security",
        "value": "warn",
        "origin": {"kind": "default", "text": "default", "line": None},
    }


def test_an_index_beside_the_cluster_file_gives_hashes_and_the_same_lock_everywhere(rackwright, tmp_path):
    names = (
        "firmware-nvidia-gsp libcuda1 libnvidia-ml1 nvidia-alternative nvidia-driver-libs "
        "nvidia-kernel-support nvidia-open-kernel-dkms nvidia-open-kernel-support nvidia-smi"
    )
    versions = dict.fromkeys(names.split(), "535.261.03-1") | {
        "nvidia-persistenced": "535.171.04-1~deb12u1",
        "linux-image-6.1.0-50-amd64": "6.1.176-1",
        "linux-headers-6.1.0-50-amd64": "6.1.176-1",
    }
    locks = []
    for folder in (tmp_path / "here", tmp_path / "there"):
        folder.mkdir()
        (folder / "Packages").write_text(
            "\n\n".join(f"Package: {name}\nVersion: {at}\nSHA256: aa" for name, at in versions.items())
        )
        stack = '{source: distribution, cuda: "none", package_index: [Packages]}'
        file = write_cluster(folder, {"t4-4x": "debian-12"}, stack)
        assert rackwright("lock", file).status == 0
        locks.append((folder / "demo.lock.yaml").read_text())
    assert locks[0] == locks[1]
    data = yaml.safe_load(locks[0])
    assert data["index"] == ["Packages"]
    assert data["groups"][0]["packages"] == versions
    assert set(data["groups"][0]["sha256"]) == set(versions)


ROLE = """\
roles:
  nvidia_driver: {repository_key: nvidia.asc}
"""


def test_locking_comes_before_the_repository_s_key(rackwright, tmp_path):
    file = write_cluster(tmp_path, {"dgx-h100": UBUNTU}, "{source: nvidia}")
    file.write_text(file.read_text() + ROLE)
    result = rackwright("lock", file)
    assert result.status == 0
    assert (tmp_path / "demo.lock.yaml").exists()
    there = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/3bf863cc.pub"
    assert result.out.endswith(
        "\nStill to do before anything is installed:\n"
        "  - roles.nvidia_driver.repository_key: The key nvidia.asc cannot be read: no such file or directory.\n"
        f"    hint: download {there} to this path\n"
    )
    data = json.loads(rackwright("lock", file, "--json").out)
    assert data["state"] == "unchanged"
    (remaining,) = data["remaining"]
    assert (remaining["where"], remaining["hint"]) == (
        "roles.nvidia_driver.repository_key",
        f"download {there} to this path",
    )
    assert rackwright("validate", file).status == 1


def test_a_lock_without_an_index_is_valid(rackwright, tmp_path):
    (tmp_path / "mirror.asc").write_text(KEY)
    file = write_cluster(tmp_path, {"dgx-h100": UBUNTU}, "{source: nvidia}")
    role = ROLE.replace("nvidia.asc", f"mirror.asc, repository_fingerprint: {FINGERPRINT}")
    file.write_text(f"{file.read_text()}{role}  kernel: {{}}\n")
    result = rackwright("lock", file)
    assert "Still to do" not in result.out
    assert "  index that would make it exact: https://developer.download.nvidia.com/" in result.out
    assert rackwright("validate", file).status == 0
