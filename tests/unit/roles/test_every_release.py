"""Every role that names packages or files can be applied to every release."""

from __future__ import annotations

import pytest

from rackwright.model.settings import Mirrors
from rackwright.osfamily.known import RELEASES
from rackwright.roles.access.options import AccessOptions
from rackwright.roles.accounts.options import AccountsOptions
from rackwright.roles.apptainer.options import ApptainerOptions
from rackwright.roles.base.options import BaseOptions
from rackwright.roles.containerd.options import ContainerdOptions
from rackwright.roles.dns.options import DnsOptions
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.gpudirect.options import GpudirectOptions
from rackwright.roles.kernel.options import KernelOptions, Modules
from rackwright.roles.network.options import NetworkOptions
from rackwright.roles.nvidia_driver.sources import origin, usual_headers
from rackwright.roles.podman.options import PodmanOptions
from rackwright.roles.proxy.options import ProxyOptions
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.roles.slurm.options import Packages, SlurmOptions
from rackwright.roles.storage_layout.options import StorageLayoutOptions
from rackwright.roles.time.options import TimeOptions
from rackwright.roles.tuning.options import TuningOptions
from tests.unit.roles.fake_host import planned
from tests.unit.roles.sites import site, worker
from tests.unit.roles.slurm_clusters import dgx

EACH = pytest.mark.parametrize("os", RELEASES.values(), ids=str)
MIRRORS = Mirrors(apt="http://m/apt", dnf="http://m/dnf", files="http://m/files")
STORAGE = StorageLayoutOptions.model_validate(
    {
        "disks": {name: {"slot": f"0000:0{name[1]}:00.0"} for name in ("d1", "d2", "d3", "d4")},
        "arrays": {"scratch": {"level": 1, "disks": ["d1", "d2"]}},
        "volume_groups": {"data": {"on": ["d3"], "volumes": {"work": "rest"}}},
        "filesystems": {"/scratch": {"on": "scratch"}, "/work": {"on": "data/work", "type": "ext4"}},
    }
)


@EACH
def test_it_is_planned_whole(os):
    apptainer = {"epel": ApptainerOptions(source="epel"), "release": ApptainerOptions(version="1.4.5")}
    options = {
        "access": AccessOptions(),
        "accounts": AccountsOptions(servers=("ldaps://ldap1",), base="dc=x", everyone=True, make_home=True),
        "apptainer": apptainer[os.family.apptainer_source],
        "base": BaseOptions(locale="de_DE.UTF-8"),
        "containerd": ContainerdOptions(source="docker"),
        "dns": DnsOptions(),
        "docker": DockerOptions(source="docker"),
        "gpudirect": GpudirectOptions(peermem=True),
        "kernel": KernelOptions(
            arguments={"nosoftlockup": True},
            remove=("quiet",),
            hugepages={"2M": 16},
            modules=Modules(load=("dummy",), options={"dummy": {"numdummies": 2}}, blacklist=("pcspkr",)),
        ),
        "network": NetworkOptions.model_validate(
            {"interfaces": {"mgmt0": {"pci": "0000:21:00.0"}}, "networks": {"management": {"on": "mgmt0"}}}
        ),
        "podman": PodmanOptions(),
        "site_ca": SiteCaOptions(),
        "proxy": ProxyOptions(http="http://proxy.example.com:3128"),
        "storage_layout": STORAGE,
        "time": TimeOptions(),
        "tuning": TuningOptions(),
    }
    cluster = site(options, os=os, mirrors=MIRRORS)
    node = worker(cluster)
    if files := options["apptainer"].package_files(node):
        options["apptainer"] = options["apptainer"].model_copy(
            update={"sha256": dict.fromkeys(files, "0" * 64)}
        )
        cluster = site(options, os=os, mirrors=MIRRORS)
        node = worker(cluster)
    for role, chosen in options.items():
        if role != "gpudirect":  # its peermem needs DOCA, and so a lock
            assert list(chosen.problems(cluster)) == [], role
    plan = planned(cluster, node)
    assert plan.error is None
    assert {operation.role for operation in plan.operations} >= set(options)


@EACH
def test_slurm_is_planned_where_its_release_is_declared(os):
    slurm = SlurmOptions(packages=Packages(source="schedmd", release="24.11"))
    cluster = dgx(slurm, os=os)
    assert list(slurm.problems(cluster)) == []
    for name in ("head1", "gpu001"):
        plan = planned(cluster, cluster.by_name[name])
        assert plan.error is None


@EACH
def test_nvidia_s_repository_has_a_key_for_each_cpu(os):
    for cpu in ("x86_64", "aarch64"):
        assert origin(os, cpu).key_url.startswith(origin(os, cpu).url)
        assert usual_headers(os, cpu)
