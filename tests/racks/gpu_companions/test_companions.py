"""The roles beside the driver on real nodes, from a repository with NVIDIA's names.

What is real here: systemd, apt and dpkg with their holds, the files, the units, the order, plans and checks.
What is not: every program of NVIDIA's, and the GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rackwright.engine.run import apply
from tests.gpu_repository import DCGM, DRIVER, GDRCOPY, REVISION, TOOLKIT
from tests.racks.gpu_companions.conftest import Refused
from tests.racks.gpu_companions.nodes import lay_out, verified, version_of
from tests.racks.gpu_companions.repository import NEWER, OLDER_DCGM, build
from tests.racks.site import Site, operations

pytestmark = pytest.mark.lab

NO_MODULES = "a container cannot load kernel modules"
OUT = "OUT OF SCOPE"
ON_ALL = {
    ("dcgm", "DCGM is installed as locked and held"): (
        "PASS",
        f"datacenter-gpu-manager-4-core 1:{DCGM}-1 and 3 more, held",
    ),
    ("dcgm", "dcgmi has the locked version"): ("PASS", DCGM),
    ("dcgm", "the DCGM host engine is running"): ("PASS", "nvidia-dcgm.service is active and enabled"),
    ("gdrcopy", "GDRCopy is installed as declared and held"): (
        "PASS",
        f"gdrdrv-dkms {GDRCOPY} and 1 more, held",
    ),
    ("gdrcopy", "gdrdrv is loaded at the declared version"): (OUT, NO_MODULES),
    ("gdrcopy", "every user can open /dev/gdrdrv"): (OUT, NO_MODULES),
    ("gpudirect", "NICs can access GPU memory through dma-buf"): (OUT, NO_MODULES),
    ("gpudirect", "nvidia-peermem is loaded only as declared"): (OUT, NO_MODULES),
    ("mig", "the GPUs are partitioned again at boot"): ("PASS", "rackwright-mig.service is enabled"),
    ("nvidia_container_toolkit", "the container toolkit is installed as locked and held"): (
        "PASS",
        f"libnvidia-container-tools {TOOLKIT}-1 and 3 more, held",
    ),
    ("nvidia_container_toolkit", "nvidia-ctk has the locked version"): ("PASS", TOOLKIT),
    ("nvidia_container_toolkit", "the runtime has the declared device mode"): ("PASS", "cdi"),
}
GPU1 = {
    ("dcgm", "DCGM finds the declared GPUs"): ("PASS", "8 GPUs"),
    ("fabricmanager", "Fabric Manager is installed as locked and held"): (
        "PASS",
        f"libnvidia-nscq {REVISION} and 1 more, held",
    ),
    ("fabricmanager", "Fabric Manager and the loaded driver have the same version"): (
        "PASS",
        f"both are {DRIVER}",
    ),
    ("fabricmanager", "Fabric Manager is running"): (
        "PASS",
        "nvidia-fabricmanager.service is active and enabled",
    ),
    ("fabricmanager", "every GPU has joined the NVLink fabric"): ("PASS", "8 GPUs: Completed, Success"),
    ("mig", "every GPU is partitioned as declared"): ("PASS", "8 GPUs: 3g.40gb 3g.40gb"),
    ("nvidia_container_toolkit", "the CDI spec lists the declared GPUs"): (
        "PASS",
        "16 devices, and all of them as one",
    ),
}
GB1 = {
    ("dcgm", "DCGM finds the declared GPUs"): ("PASS", "4 GPUs"),
    ("imex", "IMEX is installed as locked and held"): ("PASS", f"nvidia-imex {REVISION}, held"),
    ("imex", "IMEX is running"): ("PASS", "nvidia-imex.service is active and enabled"),
    ("imex", "the NVLink domain is up with every declared node"): ("PASS", "UP, 1 of 1 nodes READY"),
    ("imex", "the IMEX channels are created at every boot"): (
        "PASS",
        "rackwright-imex-channels.service is enabled",
    ),
    ("imex", "the declared IMEX channels exist"): (OUT, NO_MODULES),
    ("mig", "every GPU is partitioned as declared"): ("PASS", "4 GPUs: MIG is off"),
    ("nvidia_container_toolkit", "the CDI spec lists the declared GPUs"): (
        "PASS",
        "4 devices, and all of them as one",
    ),
}
EXPECTED = {
    **{("gpu1", *key): value for key, value in {**ON_ALL, **GPU1}.items()},
    **{("gb1", *key): value for key, value in {**ON_ALL, **GB1}.items()},
}


def test_a_version_that_is_not_the_locked_one_is_not_taken(refused: Refused):
    said = refused.ran.out + refused.ran.err
    assert f"Version '{REVISION}' for 'nvidia-fabricmanager' was not found" in said
    assert refused.installed == ""


def test_what_is_locked_is_applied_and_a_second_apply_is_empty(site: Site):
    assert "nothing to change on 2 of 2 nodes" in site.apply().out
    held = site.on("gpu1", "apt-mark showhold").split()
    assert {"nvidia-fabricmanager", "libnvidia-nscq", "gdrdrv-dkms", "nvidia-container-toolkit"} <= {*held}
    # the package's own configuration was replaced, without a conffile prompt
    assert "LOG_LEVEL=3" in site.on("gpu1", "cat /usr/share/nvidia/nvswitch/fabricmanager.cfg")
    assert "10.118.0.11" in site.on("gb1", "cat /etc/nvidia-imex/nodes_config.cfg")
    assert site.on("gpu1", "systemctl is-enabled nvidia-imex 2>/dev/null || :").strip() in ("", "not-found")


def test_every_claim(site: Site):
    assert verified(site) == EXPECTED


def test_drift_of_a_hold_a_version_and_a_file_is_found_and_repaired(site: Site):
    (older,) = OLDER_DCGM.values()
    build(site.folder / "dcgm", OLDER_DCGM)
    site.send("gb1", site.folder / "dcgm", ".", to="/srv/dcgm")
    site.on("gb1", "dpkg -i --force-downgrade /srv/dcgm/*.deb >/dev/null 2>&1; systemctl restart nvidia-dcgm")
    site.on("gpu1", "apt-mark unhold nvidia-fabricmanager >/dev/null")
    site.on("gpu1", "sed -i s/FABRIC_MODE=0/FABRIC_MODE=1/ /usr/share/nvidia/nvswitch/fabricmanager.cfg")
    site.on("gpu1", "systemctl disable rackwright-mig 2>/dev/null")
    wrong = {key: value for key, value in verified(site).items() if value != EXPECTED[key]}
    assert wrong == {
        ("gpu1", "fabricmanager", "Fabric Manager is installed as locked and held"): (
            "FAIL",
            "nvidia-fabricmanager is not held",
        ),
        ("gpu1", "mig", "the GPUs are partitioned again at boot"): (
            "FAIL",
            "rackwright-mig.service is disabled: the instances are gone after a reboot",
        ),
        ("gb1", "dcgm", "DCGM is installed as locked and held"): (
            "FAIL",
            f"datacenter-gpu-manager-4-core is {older}, not 1:{DCGM}-1",
        ),
        ("gb1", "dcgm", "dcgmi has the locked version"): ("FAIL", f"dcgmi is 4.5.2, not the locked {DCGM}"),
    }
    planned = site.apply().out
    assert f"~ package nvidia-fabricmanager ({REVISION}, not held -> {REVISION}, held)" in planned
    assert f"~ package datacenter-gpu-manager-4-core ({older}, " in planned
    assert "+FABRIC_MODE=0" in planned
    assert "rackwright-mig.service (disabled -> enabled)" in planned
    assert operations(site.plan(0)) == set()
    assert version_of(site, "gb1", "datacenter-gpu-manager-4-core") == f"1:{DCGM}-1"


@pytest.fixture
def newer(site: Site) -> Iterator[None]:
    """gpu1 knows a repository with newer versions, for a while."""
    build(site.folder / "newer", NEWER)
    site.send("gpu1", site.folder / "newer", ".", to="/srv/newer")
    source = "/etc/apt/sources.list.d/newer.list"
    site.on("gpu1", f"echo 'deb [trusted=yes] file:/srv/newer ./' >{source}; apt-get -q update >/dev/null")
    yield
    site.on("gpu1", f"rm {source}; apt-get -q update >/dev/null")


@pytest.mark.usefixtures("newer")
def test_an_upgrade_moves_nothing(site: Site):
    said = site.on("gpu1", "DEBIAN_FRONTEND=noninteractive apt-get -q -y upgrade")
    assert "The following packages have been kept back" in said
    assert version_of(site, "gpu1", "nvidia-fabricmanager") == REVISION
    assert version_of(site, "gpu1", "nvidia-container-toolkit") == f"{TOOLKIT}-1"


@pytest.fixture
def other_layout(site: Site) -> Iterator[None]:
    """Another layout is declared for gpu1, for a while; afterwards the GPUs are partitioned as before."""
    with site.declaring(lambda content: lay_out(content, {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1})):
        yield
    _cut(site)
    _settle(site, instances=2)


def _cut(site: Site) -> None:
    """Apply the mig role."""
    with site.here():
        applied = apply(site.cluster, limit="gpu1", roles=frozenset({"mig"}))
    assert not applied.plan.failed, applied.plan.failed
    assert applied.result is None or not applied.result.failed, applied.result


def _settle(site: Site, *, instances: int) -> None:
    """The container engines hear of the new instances, and dcgm runs again; partitioning waits for neither."""
    listed = "nvidia-ctk cdi list 2>/dev/null | grep -c gpu=7:"
    settled = f'[ "$({listed})" = {instances} ] && systemctl is-active --quiet nvidia-dcgm'
    site.on("gpu1", f"for _ in $(seq 240); do if {settled}; then exit 0; fi; sleep 1; done; exit 1")


@contextmanager
def _busy_gpus(site: Site) -> Iterator[None]:
    """Process 4711 computes on gpu1."""
    state = "/var/lib/fake-gpus/state.json"
    site.on("gpu1", f'sed -i \'s/"apps": \\[\\]/"apps": [4711]/\' {state}')
    try:
        yield
    finally:
        site.on("gpu1", f'sed -i \'s/"apps": \\[4711\\]/"apps": []/\' {state}')


@pytest.mark.usefixtures("other_layout")
def test_another_layout_is_disruptive_and_waits_for_an_idle_gpu(site: Site):
    with _busy_gpus(site):
        failed = site.apply(1, "--limit", "gpu1", "--role", "mig")
    assert "Partition the GPUs as declared (disruptive)" in failed.out
    before, after = "8 GPUs: Enabled 3g.40gb 3g.40gb", "8 GPUs: Enabled 1g.10gb 1g.10gb 2g.20gb 3g.40gb"
    assert f"~ setting MIG layout ({before} -> {after})" in failed.out
    assert "GPUs are in use by process 4711: drain the node first" in failed.out + failed.err
    _cut(site)
    listed = site.on("gpu1", "nvidia-smi -L | sed -n 2,5p | awk '{ print $2 }'").split()
    assert listed == ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"]
    _settle(site, instances=4)


def test_the_layout_comes_back_after_a_reboot(site: Site):
    """A driver forgets all instances, and from Hopper on the mode; the unit runs at every boot."""
    script = (
        "import json; path = '/var/lib/fake-gpus/state.json'; state = json.load(open(path))\n"
        "for gpu in state['gpus']: gpu.update(mode='Disabled', pending='Disabled', instances=[])\n"
        "json.dump(state, open(path, 'w'))"
    )
    site.on(
        "gpu1",
        f'systemctl stop rackwright-mig; python3 -c "{script}"; nvidia-smi -L | grep -q MIG && exit 1; :',
    )
    site.on("gpu1", "systemctl start multi-user.target; systemctl start rackwright-mig")
    _settle(site, instances=2)
    found = verified(site)
    assert found["gpu1", "mig", "every GPU is partitioned as declared"] == ("PASS", "8 GPUs: 3g.40gb 3g.40gb")
    assert {status for status, _ in found.values()} == {"PASS", OUT}
