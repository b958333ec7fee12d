"""Each text of the format has a type that allows what its values need, or a reason here why any text is harmless."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from rackwright.clusterfile.file import ClusterFile, NodeGroup
from rackwright.clusterfile.roles import options_class, role_names
from rackwright.model import strings
from tests.unit.model.walking import free_texts, models_below

NAME_OF_A_NODE = "refused unless a node of the cluster has this name"
NODES = "read as a NodeSet, each of whose names a node of the cluster has"
NAME_IN_THE_FILE = "refused unless the file, or the catalogue, has something of this name"
SHOWN = "shown to people, and compared; reports escape it"
COMPARED = "compared with what the node reports, as JSON"

YAML = "written by YAML's own writer, which quotes it"
ARGUMENT = "one quoted word of a unit's command line (rackwright.exporters)"
PORT_NAME = "an interface or a bond of the same section, whose names are checked"

FREE = {
    "AlertmanagerOptions.extra_arguments[]": ARGUMENT,
    "AlertmanagerOptions.nodes[]": NAME_OF_A_NODE,
    "ExtraJob.labels{}": YAML,
    "Federation.match[]": YAML,
    "LogsOptions.server": NAME_OF_A_NODE,
    "Login.user": YAML,
    "Override.thresholds{key}": "refused unless the alert has a threshold of this name",
    "PrometheusOptions.alerts{key}": "refused unless there is an alert of this name",
    "PrometheusOptions.extra_arguments[]": ARGUMENT,
    "PrometheusOptions.labels{}": YAML,
    "PrometheusOptions.nodes[]": NAME_OF_A_NODE,
    "RemoteWrite.keep": YAML,
    "Route.match{}": YAML,
    "SlurmExporterOptions.extra_arguments[]": ARGUMENT,
    "SlurmExporterOptions.node": NAME_OF_A_NODE,
    "ControlPlane.nodes[]": NAME_OF_A_NODE,
    "RayOptions.head": NAME_OF_A_NODE,
    "Service.nodes": "expanded to names of nodes",
    "Addon.values{key}": "given to helm as JSON on its standard input",
    "GpuStackK8sOptions.products{key}": NAME_IN_THE_FILE,
    "Bond.interfaces[]": PORT_NAME,
    "OnPort.on": PORT_NAME,
    "OnPort.on[]": PORT_NAME,
    "Interface.mac": "checked as a MAC address",
    "Interface.pci": "checked as a PCI address",
    "NetworkOptions.networks{key}": NAME_IN_THE_FILE,
    "Route.network": NAME_IN_THE_FILE,
    "Device.network": NAME_IN_THE_FILE,
    "RdmaOptions.network": NAME_IN_THE_FILE,
    "RdmaOptions.sharp{key}": NAME_IN_THE_FILE,
    "Interface.network": NAME_IN_THE_FILE,
    "Child.network": NAME_IN_THE_FILE,
    "OpensmOptions.networks{key}": NAME_IN_THE_FILE,
    "Subnet.guids{key}": NAME_OF_A_NODE,
    "StorageLayoutOptions.sku_disks{}": "compared with the uses that a SKU gives its drives",
    "ScratchOptions.filesystem": NAME_IN_THE_FILE,
    "DatasetCacheOptions.filesystem": NAME_IN_THE_FILE,
    "Dataset.filesystem": NAME_IN_THE_FILE,
    "DiskChoice.serials{}": "checked as a serial",
    "DiskChoice.serials{key}": NAME_OF_A_NODE,
    "KernelOptions.hugepages{key}": "checked as a size",
    "SiteCaOptions.organization": "a field of the CA's name, encoded as X.509 has it",
    "Allow.source": "read as a network of the file or as addresses, and written as those",
    "FirewallOptions.zones{key}": NAME_IN_THE_FILE,
    "IntegrityOptions.allowed_sshd_match[]": "compared with what a node answers, written nowhere",
    "Defaults.sku": NAME_IN_THE_FILE,
    "DiskRule.model": COMPARED,
    "NodeGroup.sku": NAME_IN_THE_FILE,
    "NodeGroup.addresses{key}": NAME_IN_THE_FILE,
    "NodeGroup.mig": NAME_IN_THE_FILE,
    "NodeGroup.mig{key}": NAME_IN_THE_FILE,
    "NodeGroup.options{key}": NAME_IN_THE_FILE,
    "NodeGroup.options{}{key}": "read by the role's own model",
    "NodeGroup.primary": NAME_OF_A_NODE,
    "NodeGroup.nodes": "expanded, each name checked as a host name",
    "NodeGroup.rack": "expanded, each name checked as a label",
    "NodeGroup.switch": "expanded, each name checked as a label",
    "NodeGroup.switch[]": "expanded, each name checked as a label",
    "ClusterFile.fabrics{key}": NAME_IN_THE_FILE,
    "ClusterFile.storage{key}": "checked as a label (read_storage)",
    "FilesystemSection.path": "checked as a path (path_mistake)",
    "FilesystemSection.export": "checked as a path (path_mistake)",
    "FilesystemSection.servers[]": "a node, an address, a DNS name or a Lustre NID, each checked",
    "FilesystemSection.options[]": "checked against the options of the kind (option_mistakes)",
    "FilesystemSection.network": NAME_IN_THE_FILE,
    "FilesystemSection.nodes": NODES,
    "Quota.users{key}": SHOWN,
    "NfsServerOptions.modes{key}": NAME_IN_THE_FILE,
    "FabricSection.spines": "expanded, each name checked as a label",
    "FabricSection.switches{key}": "refused unless a cable of the fabric ends there",
    "SwitchSection.description": COMPARED,
    "ClusterFile.networks{key}": "checked as a label (read_networks)",
    "ClusterFile.firmware{key}": NAME_IN_THE_FILE,
    "ClusterFile.skus{key}": "checked as a label (read_skus)",
    "ClusterFile.roles{key}": NAME_IN_THE_FILE,
    "ClusterFile.roles{}{key}": "read by the role's own model",
    "SkuEntry.vendor": SHOWN,
    "SkuEntry.description": SHOWN,
    "SkuEntry.product": SHOWN,
    "SkuEntry.cpu_model": SHOWN,
    "Gpus.model": SHOWN,
    "Gpus.mig": NAME_IN_THE_FILE,
    "Nic.model": SHOWN,
    "Nvme.use": SHOWN,
    "Source.text": SHOWN,
    "Published.field": SHOWN,
    "Published.values[]": SHOWN,
    "Published.chosen": SHOWN,
    "Published.reason": SHOWN,
    "Burnin.floor_source": SHOWN,
    "Burnin.transport": "compared with the log of the job",
    "Burnin.nccl_env{key}": "checked against the names of NCCL, UCX, Open MPI, CUDA, UCC and SHARP (read_burnin)",
    "Burnin.nccl_env{}": "an argument of env, quoted by shlex.join (rackwright.workload.slurm.srun)",
    "GpuStack.package_index[]": "read by `rackwright lock` on this machine; sent nowhere",
    "GpuStack.kernel": "checked by `rackwright lock` against the names of the OS's kernels; the lock has it then",
    "RequiredMount.source": COMPARED,
    "RequiredMount.type": COMPARED,
    "HealthRoleOptions.kernel_arguments[]": COMPARED,
    "DeclaredFirmware.bios": COMPARED,
    "DeclaredFirmware.gpu_vbios": COMPARED,
    "DeclaredFirmware.nic{key}": COMPARED,
    "DeclaredFirmware.nic{}": COMPARED,
    "DeclaredFirmware.nvme{key}": COMPARED,
    "DeclaredFirmware.nvme{}": COMPARED,
    "HomeOptions.made_on": NAME_OF_A_NODE,
    "ImexOptions.domains{}": NODES,
    "ImexOptions.network": NAME_IN_THE_FILE,
    "LldpOptions.networks[]": NAME_IN_THE_FILE,
    "LnetNetwork.network": NAME_IN_THE_FILE,
    "CephfsClientOptions.access{key}": NAME_IN_THE_FILE,
    "EfaOptions.networks[]": NAME_IN_THE_FILE,
    "IrdmaOptions.networks[]": NAME_IN_THE_FILE,
    "NcclOptions.networks[]": NAME_IN_THE_FILE,
    "RoceOptions.networks[]": NAME_IN_THE_FILE,
    "SpectrumXOptions.networks[]": NAME_IN_THE_FILE,
    "MariadbOptions.node": NAME_OF_A_NODE,
    "MysqldExporterOptions.node": NAME_OF_A_NODE,
    "Extra.target": "checked as a URL, a host, or host:port; never in a file of the exporter",
    "BlackboxExporterOptions.extra_arguments[]": ARGUMENT,
    "DcgmExporterOptions.extra_arguments[]": ARGUMENT,
    "IpmiExporterOptions.extra_arguments[]": ARGUMENT,
    "MysqldExporterOptions.extra_arguments[]": ARGUMENT,
    "NodeExporterOptions.extra_arguments[]": ARGUMENT,
    "SnmpExporterOptions.extra_arguments[]": ARGUMENT,
    "SlurmOptions.backups[]": NAME_OF_A_NODE,
    "SlurmOptions.node_settings{key}": NODES,
    "Partition.nodes": NODES,
    "Reservation.nodes": NODES,
    "PowerSaving.exclude_nodes[]": NODES,
    "PowerSaving.exclude_partitions[]": NAME_IN_THE_FILE,
}
"""Model and field, `[]`: its items, `{}`: its values, `{key}`: its keys; to the reason."""


def test_each_text_has_a_type_or_a_reason():
    roots = (ClusterFile, NodeGroup, *map(options_class, role_names()))
    found = {
        f"{model.__name__}.{place}"
        for root in roots
        for model in models_below(root)
        for place in free_texts(model)
    }
    assert found - set(FREE) == set(), "give it a type of rackwright.model.strings, or a reason in FREE"
    assert set(FREE) - found == set(), "it has a type now, or is gone"


def accepted(kind, text):
    try:
        return TypeAdapter(kind).validate_python(text) == text
    except ValidationError:
        return False


SPECIAL = " \t\n\r\0\"'#;\\$`|&<>(){}[]*?!=,@^"
"""What begins something new in a shell, or in the files of apt, dnf, sshd, Slurm, systemd or SQL."""
KINDS = {
    name: kind for name, kind in vars(strings).items() if name[0].isupper() and hasattr(kind, "__metadata__")
}
ALLOWED = {"Version": " ()", "GroupName": "@", "UnitName": "@", "JumpHost": "@", "RegistryUser": "$@"}
EXAMPLES = {
    "HttpUrl": "https://mirror.example.com:8080/debian",
    "NodePath": "/scratch/docker",
    "RegistryName": "registry.example.com:5000",
    "UserName": "ada",
    "GroupName": "hpc-admins@example.com",
    "SecretName": "registry_password",
    "UnitName": "nfs-client.target",
    "InterfaceName": "bond0",
    "PackageName": "linux-headers-amd64",
    "PackageFile": "apptainer_1.4.5_amd64.deb",
    "Sha256": "0" * 64,
    "KernelRelease": "6.8.0-139-generic",
    "Identifier": "nvidia",
    "Version": "22.47.1026 (MT_0000000838)",
    "Guid": "0x0002c903000e0b72",
    "Slug": "docker-io",
    "RegistryUser": "$oauthtoken",
    "LabelName": "rack_row",
    "HostPort": "10.0.0.200:9100",
    "ImageReference": "registry.example.com:5000/nvidia/k8s-device-plugin:v0.20.0",
    "KubernetesName": "gpu-operator",
    "JumpHost": "admin@bastion.example.com:22",
}


def test_each_type_is_tested():
    assert set(KINDS) == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_special_character_gets_through(name):
    """At the end, inside and at the beginning of a value that is accepted."""
    example = EXAMPLES[name]
    assert accepted(KINDS[name], example)
    for special in set(SPECIAL) - set(ALLOWED.get(name, "")):
        for at in (0, len(example) // 2, len(example)):
            text = example[:at] + special + example[at:]
            assert not accepted(KINDS[name], text), text


@pytest.mark.parametrize("name", EXAMPLES)
@given(text=st.text(st.characters(categories=("L", "N", "P", "S", "Z", "C")), max_size=12))
def test_nor_in_any_text(name, text):
    if accepted(KINDS[name], text):
        assert not set(text) & (set(SPECIAL) - set(ALLOWED.get(name, "")))
        assert text.isascii()
        assert not text.startswith("-")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://joe:hunter2@mirror.example.com/", "The URL contains credentials."),
        ("http://joe@mirror.example.com/", "The URL contains credentials."),
        ("ftp://mirror.example.com/", "Not a valid http or https URL."),
        ("http:///debian", "Not a valid http or https URL."),
        ("http://mirror:99999/", "Not a valid http or https URL."),
        ('http://m/";DPkg::Pre-Invoke', "Not a valid http or https URL."),
        ("http://m/a b", "Not a valid http or https URL."),
    ],
)
def test_urls_that_are_refused(url, message):
    with pytest.raises(ValidationError, match=re.escape(message)):
        TypeAdapter(strings.HttpUrl).validate_python(url)


@pytest.mark.parametrize("path", ["/a/../b", "/..", "/./a", "a", "/", "/a/", "//a", "/a b", "~/a"])
def test_paths_that_are_refused(path):
    assert not accepted(strings.NodePath, path)
