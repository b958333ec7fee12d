"""vagrant/Vagrantfile: the VMs it makes of a cluster file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from rackwright.clusterfile.load import load_cluster
from rackwright.lab.ports import ports
from tests.unit.vagrant.conftest import ROOT, VAGRANTFILE, Calls

SHIPPED = ROOT / "inventory" / "vagrant.yaml"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A copy of inventory/vagrant.yaml."""
    path = tmp_path / "vagrant.yaml"
    shutil.copy(SHIPPED, path)
    return path


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    "path", [*sorted(VAGRANTFILE.parent.glob("*.rb")), VAGRANTFILE], ids=lambda path: path.name
)
def test_ruby_finds_nothing_to_warn_of(ruby: str, path: Path) -> None:
    done = subprocess.run([ruby, "-wc", str(path)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "Syntax OK", "")


def test_a_vm_for_each_node_with_its_size(calls: Callable[..., Calls], file: Path) -> None:
    found = calls(file)
    assert found["config.vm.define"] == [
        ["head1", {"primary": True}],
        ["worker1", {"primary": False}],
        ["worker2", {"primary": False}],
    ]
    assert found["worker1.vm.provider.libvirt.memory="] == [[2048]]
    assert found["worker1.vm.provider.libvirt.cpus="] == [[2]]
    assert found["worker1.vm.provider.libvirt.cputopology"] == [[{"sockets": 1, "cores": 2, "threads": 1}]]


def test_ssh_is_strict_from_the_first_connection(calls: Callable[..., Calls], file: Path) -> None:
    found = calls(file)
    assert found["config.ssh.verify_host_key="] == [["always"]]
    assert found["config.ssh.insert_key="] == [[False]]
    assert found["config.ssh.private_key_path="] == [[str(file.parent / ".lab/vagrant/id_ed25519")]]
    assert found["config.ssh.config="] == [[str(file.parent / ".lab/vagrant/seeds/ssh_config")]]
    assert found["worker2.ssh.host="] == [["10.79.0.12"]]


def test_each_port_is_a_network_without_dhcp_or_a_way_out(calls: Callable[..., Calls], file: Path) -> None:
    node = load_cluster(file).by_name["worker1"]
    macs = [port.mac.replace(":", "") for port in ports(load_cluster(file), node) if port.mac]
    (management, of_vm), (storage, other) = calls(file)["worker1.vm.network"]
    assert (management, storage) == ("private_network", "private_network")
    assert [of_vm["mac"], other["mac"]] == macs
    assert of_vm["ip"] == "10.79.0.11"
    assert of_vm["netmask"] == "255.255.255.0"
    assert of_vm["libvirt__forward_mode"] == "none"
    assert of_vm["libvirt__host_ip"] == "10.79.0.1"
    assert other["libvirt__forward_mode"] == "veryisolated"
    assert "libvirt__host_ip" not in other
    for options in (of_vm, other):
        assert options["libvirt__dhcp_enabled"] is False
        assert options["auto_config"] is False
    assert of_vm["libvirt__network_name"] == "rackwright-vagrant-management"
    assert other["libvirt__network_name"] == "rackwright-vagrant-storage"
    assert calls(file)["worker1.vm.provider.libvirt.mgmt_attach="] == [[False]]


def test_rails_are_networks_of_their_own(calls: Callable[..., Calls], file: Path) -> None:
    content = yaml.safe_load(file.read_text())
    content["networks"]["storage"] |= {"purpose": "fabric", "rails": 2, "rail_prefix": 25}
    content["skus"]["vagrant-node"]["nics"] = [
        {"purpose": "fabric", "kind": "ethernet", "speed_gbps": 1, "rail": rail} for rail in (0, 1)
    ]
    file.write_text(yaml.safe_dump(content))
    networks = [options for _, options in calls(file)["worker2.vm.network"]]
    assert [(each["ip"], each["netmask"], each["libvirt__network_name"]) for each in networks[1:]] == [
        ("10.79.1.12", "255.255.255.128", "rackwright-vagrant-storage"),
        ("10.79.1.140", "255.255.255.128", "rackwright-vagrant-storage-rail1"),
    ]


def test_data_disks_and_the_seed(calls: Callable[..., Calls], file: Path) -> None:
    change(file, "    memory_mib: 2048\n", "    memory_mib: 2048\n    nvme: [{count: 2, size_gb: 4}]\n")
    *data, (kind, seed) = calls(file)["worker1.vm.provider.libvirt.storage"]
    assert [(options["size"], options["serial"]) for _, options in data] == [
        ("4000000000B", "data0"),
        ("4000000000B", "data1"),
    ]
    assert (kind, seed["serial"], seed["path"]) == (
        "file",
        "rackwright-seed",
        "rackwright-vagrant-worker1-seed.raw",
    )
    assert seed["allow_existing"] is True
    assert seed["type"] == "raw"


def test_driver_is_chosen_or_named(calls: Callable[..., Calls], file: Path) -> None:
    emulated = calls(file, RACKWRIGHT_VAGRANT_DRIVER="qemu")
    assert emulated["head1.vm.provider.libvirt.driver="] == [["qemu"]]
    assert emulated["head1.vm.provider.libvirt.cpu_mode="] == [["custom"]]
    real = calls(file, RACKWRIGHT_VAGRANT_DRIVER="kvm")
    assert real["head1.vm.provider.libvirt.cpu_mode="] == [["host-passthrough"]]
    assert "head1.vm.provider.libvirt.cpu_model=" not in real


def test_boxes_come_from_files_by_node_or_role(calls: Callable[..., Calls], file: Path) -> None:
    boxes = file.parent / ".lab/vagrant/boxes"
    boxes.mkdir(parents=True)
    assert "worker1.vm.box=" not in calls(file)
    for name in ("worker", "worker2"):
        (boxes / f"{name}.box").touch()
    found = calls(file)
    assert found["worker1.vm.box_url="] == [[f"file://{boxes}/worker.box"]]
    assert found["worker2.vm.box_url="] == [[f"file://{boxes}/worker2.box"]]
    assert "head1.vm.box=" not in found
    assert found["config.vm.box_check_update="] == [[False]]
    (name,) = found["worker1.vm.box="][0]
    assert name.startswith("rackwright-vagrant/worker-")


def test_virtualbox_attaches_the_seed_and_isolates_the_other_networks(
    calls: Callable[..., Calls], file: Path
) -> None:
    found = calls(file, "virtualbox")
    customized = [arguments[0] for arguments in found["worker1.vm.provider.virtualbox.customize"]]
    medium = customized[1][customized[1].index("--medium") + 1]
    assert medium == str(file.parent / ".lab/vagrant/seeds/worker1.vmdk")
    assert customized[2][-1] == "rackwright-seed"
    assert found["worker1.vm.network"][1][1]["virtualbox__intnet"] == "rackwright-vagrant-storage"
    assert found["worker1.vm.network"][0][1]["adapter_ip"] == "10.79.0.1"


def test_vmware_attaches_the_seed(calls: Callable[..., Calls], file: Path) -> None:
    settings = dict(calls(file, "vmware_desktop")["worker1.vm.provider.vmware_desktop.vmx.[]="])
    assert settings["sata0:1.fileName"] == str(file.parent / ".lab/vagrant/seeds/worker1.vmdk")
    assert settings["memsize"] == "2048"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "platform: vm",
            "platform: bare-metal",
            "head1 in {file} is bare-metal, but Vagrant makes virtual machines",
        ),
        (
            "  lab: {cpus: 2, memory_mib: 2048} # the size of the VM\n",
            "",
            "head1 in {file} has no `lab` section",
        ),
        (
            "    gateway: 10.79.0.1 # this machine's address on it; nothing is routed beyond\n",
            "",
            "no gateway",
        ),
        ("  key: .lab/vagrant/id_ed25519\n", "", "{file} names no `ssh.key`"),
        ("sku: vagrant-node", "sku: vagrant-nod", "rackwright cannot read {file}"),
    ],
)
def test_a_file_that_makes_no_vms_is_refused(
    load: Callable[..., subprocess.CompletedProcess[str]], file: Path, old: str, new: str, message: str
) -> None:
    change(file, old, new)
    done = load(file)
    assert done.returncode != 0
    assert message.format(file=file) in done.stderr
    assert "hint: " in done.stderr


def test_without_rackwright_the_message_names_it(
    load: Callable[..., subprocess.CompletedProcess[str]], file: Path
) -> None:
    done = load(file, RACKWRIGHT="no-such-rackwright")
    assert "no-such-rackwright is not installed" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("vagrant") is None,
    reason="UNKNOWN: vagrant is not installed (apt install vagrant vagrant-libvirt)",
)
def test_vagrant_finds_the_settings_valid(file: Path, tmp_path: Path) -> None:
    own = {
        "RACKWRIGHT": f"{sys.executable} -m rackwright",
        "PYTHONPATH": str(ROOT),
        "RACKWRIGHT_CLUSTER": str(file),
        "RACKWRIGHT_VAGRANT_DRIVER": "qemu",
        "VAGRANT_CWD": str(VAGRANTFILE.parent),
        "VAGRANT_DOTFILE_PATH": str(tmp_path / "dot"),
        "VAGRANT_HOME": str(tmp_path / "home"),
        "VAGRANT_DEFAULT_PROVIDER": "libvirt",
        "VAGRANT_CHECKPOINT_DISABLE": "1",
        "HOME": str(tmp_path),
    }

    def validate() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["vagrant", "validate"],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            env={**os.environ, **own},
        )

    # without the key and the settings of ssh, which `up` writes, Vagrant reports it: it does read what is set
    refused = validate()
    assert refused.returncode == 1
    assert f"`private_key_path` file must exist: {file.parent}/.lab/vagrant/id_ed25519" in refused.stderr
    lab = file.parent / ".lab/vagrant"
    (lab / "seeds").mkdir(parents=True)
    for path in ("id_ed25519", "seeds/ssh_config"):
        (lab / path).touch()
    done = validate()
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "Vagrantfile validated successfully." in done.stdout
