"""The efa role."""

from __future__ import annotations

import subprocess
import tarfile

import pytest

from rackwright.model.settings import Mirrors
from rackwright.model.sku import Nic
from rackwright.model.types import LinkKind, NetworkPurpose, Platform
from rackwright.osfamily.known import RELEASES
from rackwright.roles.efa import texts
from rackwright.roles.efa.options import EfaOptions
from rackwright.roles.efa.verify import CHECKS
from tests.factories import make_gpu_sku
from tests.unit.roles.fake_facts import file
from tests.unit.roles.fake_host import FakeHost, claimed, commands, errors_in, judged, planned
from tests.unit.roles.rail_sites import fabric_site
from tests.unit.roles.sites import worker

INSTALLED, PROVIDER, PAGES, PLUGIN = (check.name for check in CHECKS)
LIBRARY = "/opt/amazon/ofi-nccl/lib/libnccl-net.so"
DIGEST = "a" * 64
PLAIN = EfaOptions(version="1.41.0", sha256=DIGEST)
FULL = PLAIN.model_copy(update={"huge_pages": 5128, "nccl_plugin": LIBRARY})
SKU = make_gpu_sku(
    nics=tuple(
        Nic(purpose=NetworkPurpose.FABRIC, kind=LinkKind.EFA, speed_gbps=100, rail=rail) for rail in (0, 1)
    )
)


def efa_site(given=FULL, *, kind=LinkKind.EFA, **changes):
    return fabric_site({"efa": given}, kind=kind, cabled=False, **{"sku": SKU, **changes})


CLUSTER = efa_site()


def info(*domains):
    return "".join(
        f"provider: efa\n    fabric: efa\n    domain: {domain}\n    version: 201.0\n"
        f"    type: FI_EP_RDM\n    protocol: FI_PROTO_EFA\n"
        for domain in domains
    )


def test_refused():
    assert len(errors_in(EfaOptions, {})) == 2  # version and digest
    given = PLAIN.model_copy(update={"networks": ("fabric", "nowhere")})
    assert [problem[:2] for problem in given.problems(efa_site(given, kind=LinkKind.ROCE))] == [
        ("networks[0]", "fabric has `kind: roce`, which is not supported here."),
        ("networks[1]", "Network nowhere does not exist."),
    ]
    uncounted = efa_site(PLAIN, sku=make_gpu_sku())
    assert list(PLAIN.problems(uncounted)) == [
        (
            "devices",
            "The SKU gpu-node of gpu1 has no port of the kind efa on the fabric.",
            "e.g. `devices: 32`",
        )
    ]
    assert list(PLAIN.problems(CLUSTER)) == []
    assert PLAIN.model_copy(update={"devices": 32}).device_count(worker(CLUSTER)) == 32


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    cluster = efa_site(os=os)
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    assert commands(plan, "Install EFA") == (texts.install(FULL),)
    fetch = commands(plan, "Fetch the EFA installer")[0]
    assert "https://efa-installer.amazonaws.com/aws-efa-installer-1.41.0.tar.gz" in fetch
    assert DIGEST in fetch


def test_from_the_site_s_mirror_with_the_kernel_s_own_driver():
    cluster = efa_site(mirrors=Mirrors(files="http://m/files"))
    assert texts.url(cluster, FULL) == "http://m/files/aws-efa-installer-1.41.0.tar.gz"
    assert "-y --skip-kmod <" in texts.install(PLAIN.model_copy(update={"kernel_module": False}))


def test_a_container_has_no_driver():
    cluster = efa_site(platform=Platform.CONTAINER)
    assert [op for op in planned(cluster, worker(cluster)).operations if op.role == "efa"] == []
    assert judged("efa", CHECKS, PROVIDER, cluster, worker(cluster), FakeHost({})).status == "OUT OF SCOPE"


@pytest.mark.parametrize("code", [0, 3])
def test_the_shell_runs_the_installer_of_the_tarball(tmp_path, code):
    """With a tarball as Amazon's is laid out."""
    script = tmp_path / "efa_installer.sh"
    script.write_text(f'#!/bin/sh\necho "$PWD $*" >{tmp_path}/ran\nexit {code}\n')
    script.chmod(0o755)
    with tarfile.open(tmp_path / PLAIN.tarball, "w:gz") as tarball:
        tarball.add(script, "aws-efa-installer/efa_installer.sh")
    shell = texts.install(PLAIN).replace(texts.DOWNLOADS, str(tmp_path))
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False, timeout=20)
    folder, words = (tmp_path / "ran").read_text().split(" ", 1)
    assert (done.returncode, words) == (code, "-y\n")
    assert folder.endswith("/aws-efa-installer")
    assert (
        subprocess.run(["ls", folder], capture_output=True, check=False).returncode != 0
    )  # it is gone again


def test_the_version_that_ran_last_is_read(tmp_path):
    record = tmp_path / "packages"
    record.write_text("# EFA installer version: 1.41.0\n# Debug packages installed: no\nefa-config_1.18\n")
    shell = texts.READ_VERSION.replace(texts.INSTALLED, str(record))
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout == "1.41.0\n"


HEALTHY = {
    texts.READ_VERSION: "1.41.0\n",
    texts.PROVIDER: info("rdmap16s27-rdm", "rdmap32s27-rdm"),
    f"cat {texts.HUGE_PAGES}": "5128\n",
    **file(LIBRARY, "", digest_only=True),
}
CASES = [
    (INSTALLED, {}, "PASS", "aws-efa-installer 1.41.0"),
    (
        INSTALLED,
        {texts.READ_VERSION: "1.38.0\n"},
        "FAIL",
        "aws-efa-installer 1.38.0 was run last, not 1.41.0",
    ),
    (INSTALLED, {texts.READ_VERSION: "\n"}, "UNKNOWN", None),
    (INSTALLED, {texts.READ_VERSION: (2, "", "sed: can't read")}, "UNKNOWN", None),
    (PROVIDER, {}, "PASS", "2 devices"),
    (
        PROVIDER,
        {texts.PROVIDER: info("rdmap16s27-rdm", "rdmap16s27-rdm")},
        "FAIL",
        "libfabric finds 1 of 2 EFA devices: rdmap16s27-rdm",
    ),
    (PROVIDER, {texts.PROVIDER: info("eth0").replace("provider: efa", "provider: tcp")}, "UNKNOWN", None),
    (PROVIDER, {texts.PROVIDER: (61, "", "fi_getinfo: -61")}, "UNKNOWN", None),
    (PAGES, {}, "PASS", "5128 huge pages of 2 MiB"),
    (
        PAGES,
        {f"cat {texts.HUGE_PAGES}": "0\n"},
        "FAIL",
        "0 huge pages of 2 MiB, not 5128: see `roles.kernel.hugepages`",
    ),
    (PAGES, {f"cat {texts.HUGE_PAGES}": "\n"}, "UNKNOWN", None),
    (PLUGIN, {}, "PASS", LIBRARY),
    (PLUGIN, file(LIBRARY, None), "FAIL", f"{LIBRARY} is missing: NCCL would use TCP"),
]


@pytest.mark.parametrize(("name", "changes", "status", "evidence"), CASES)
def test_check(name, changes, status, evidence):
    found = judged("efa", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({**HEALTHY, **changes}))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


@pytest.mark.parametrize("answer", [None, "", "rubbish\n", (124, "", "")])
@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_unreadable_answers_never_pass(name, answer):
    found = judged("efa", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({}, always=answer))
    assert found.status in ("FAIL", "UNKNOWN"), found.evidence


def test_scope():
    cluster = efa_site(PLAIN)
    assert claimed("efa", CHECKS, worker(cluster)) == (INSTALLED, PROVIDER)
