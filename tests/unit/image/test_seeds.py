"""rackwright image seed: one disk for each virtual machine, whose host key stays what it was."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ImageError
from rackwright.image.seeds import write_seeds
from rackwright.model.cluster import Cluster

REPO = Path(__file__).resolve().parents[3]
NODES = ["head1", "worker1", "worker2"]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    file = tmp_path / "site" / "vagrant.yaml"
    file.parent.mkdir()
    file.write_text((REPO / "inventory" / "vagrant.yaml").read_text())
    return load_cluster(file, locked=False)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Two images, by role."""
    for role in ("head", "worker"):
        etc = tmp_path / "images" / role / "etc"
        etc.mkdir(parents=True)
        for name in ("passwd", "group", "shadow", "gshadow"):
            (etc / name).write_text(f"root:{role}\n")
    return tmp_path / "images"


def read(seed: Path, member: str) -> str:
    with tarfile.open(seed) as tar:
        file = tar.extractfile(member)
        assert file is not None
        return file.read().decode()


def test_every_machine_gets_a_seed_of_its_image(cluster: Cluster, images: Path, tmp_path: Path) -> None:
    out = tmp_path / "seeds"
    assert write_seeds(cluster, images, out) == NODES
    assert out.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in out.iterdir()) == [f"{name}.tar" for name in NODES]
    assert read(out / "worker2.tar", "etc/hostname") == "worker2\n"
    assert read(out / "worker2.tar", "etc/passwd").startswith("root:worker\nrack:x:1000:1000:")
    assert read(out / "head1.tar", "etc/passwd").startswith("root:head\n")
    with tarfile.open(out / "head1.tar") as tar:
        owners = {member.name: (member.uid, member.gid) for member in tar}
    assert owners["home/rack/.ssh/authorized_keys"] == (1000, 1000)
    assert owners["etc/ssh/ssh_host_ed25519_key"] == (0, 0)


def test_a_seed_that_is_there_keeps_its_host_key(cluster: Cluster, images: Path, tmp_path: Path) -> None:
    out = tmp_path / "seeds"
    write_seeds(cluster, images, out)
    before = cluster.ssh.known_hosts.read_text()
    (out / "worker1.tar").unlink()
    assert write_seeds(cluster, images, out) == ["worker1"]
    after = cluster.ssh.known_hosts.read_text()
    assert [line.split()[0] for line in before.splitlines()] == [
        line.split()[0] for line in after.splitlines()
    ]
    changed = [new for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new]
    assert len(changed) == 1
    assert changed[0].startswith("worker1,")
    assert write_seeds(cluster, images, out) == []
    key = read(out / "worker1.tar", "etc/ssh/ssh_host_ed25519_key.pub").split()[1]
    assert key in changed[0]


def test_the_host_key_is_the_one_that_known_hosts_names(
    cluster: Cluster, images: Path, tmp_path: Path
) -> None:
    write_seeds(cluster, images, tmp_path / "seeds")
    address = cluster.management_address(cluster.by_name["head1"])
    asked = ["ssh-keygen", "-F", str(address), "-f", str(cluster.ssh.known_hosts)]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    private = tmp_path / "private"
    private.write_text(read(tmp_path / "seeds" / "head1.tar", "etc/ssh/ssh_host_ed25519_key"))
    private.chmod(0o600)
    derived = subprocess.run(
        ["ssh-keygen", "-y", "-f", str(private)], capture_output=True, text=True, check=True
    )
    assert derived.stdout.split()[1] in found


def test_a_machine_without_an_image_is_named_before_anything_is_written(
    cluster: Cluster, images: Path, tmp_path: Path
) -> None:
    (images / "worker").rename(images / "worker1")
    with pytest.raises(ImageError) as caught:
        write_seeds(cluster, images, tmp_path / "seeds")
    assert (
        caught.value.message == f"worker2 has no boot image in {images}: it has no folder worker2 or worker"
    )
    assert "rackwright image build FILE --group worker2" in (caught.value.hint or "")
    assert not (tmp_path / "seeds").exists()


def test_what_is_not_a_seed_is_refused(cluster: Cluster, images: Path, tmp_path: Path) -> None:
    out = tmp_path / "seeds"
    out.mkdir()
    (out / "head1.tar").write_bytes(b"something else")
    with pytest.raises(ImageError, match=r"head1\.tar is not a seed"):
        write_seeds(cluster, images, out)


def test_a_file_without_machines_is_refused(images: Path, tmp_path: Path) -> None:
    lab = load_cluster(REPO / "inventory" / "lab.yaml", locked=False)
    with pytest.raises(ImageError, match=r"lab\.yaml declares no virtual machine"):
        write_seeds(lab, images, tmp_path / "seeds")
