"""Combinations that cannot be locked, each refused with exactly these words."""

from __future__ import annotations

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.lock.index import Index
from rackwright.lock.request import shipped_tables
from rackwright.lock.solve import solve
from rackwright.lock.words import INDEX_HINT
from tests.unit.lock.clusters import write_cluster

UBUNTU = "ubuntu-24.04"
NO_FABRIC = (
    "HGX B200 has NVSwitches and needs nvidia-fabricmanager and libnvidia-nscq at the driver's version; "
    "Debian's own repository has neither."
)
DKMS = "DKMS builds the driver's modules on the node; with Secure Boot they load only if the site's signing key (MOK) is enrolled."
MIXED = (
    "{nvidia_container_toolkit: 1.20.0, nvidia_container_toolkit_base: 1.20.0, "
    "libnvidia_container_tools: 1.19.1, libnvidia_container1: 1.20.0}"
)
BAD_PAIR = (
    "nvidia-open-kernel-dkms 550.163.01-2 does not build against the headers of linux 6.12.117 (debian-13): "
    "pci_resize_resource takes more arguments there."
)

# name: (SKU, OS, gpu_stack, every reason)
TABLE = {
    "B200 from Debian's archive": (
        "hgx-b200",
        "debian-13",
        "{source: distribution}",
        [
            "HGX B200 needs driver >= 570.133.20; Debian's own repository ends at 550.163.01.",
            BAD_PAIR,
            "HGX B200 (compute capability 10.0) needs CUDA >= 12.8: 12.4 cannot compile for it.",
            NO_FABRIC,
            (
                "HGX B200 has NVSwitches of NVLink generation 5 and needs nvlsm; "
                "Debian's own repository for debian-13 does not have it."
            ),
        ],
    ),
    "B200 with an older driver": (
        "dgx-b200",
        UBUNTU,
        '{driver: {branch: "535"}, cuda: "12.9"}',
        ["DGX B200 needs driver >= 570.133.20, not 535.309.01."],
    ),
    "proprietary modules on Blackwell": (
        "hgx-b200",
        UBUNTU,
        "{modules: proprietary}",
        ["HGX B200 needs open kernel modules: Blackwell and Grace support no others."],
    ),
    "open modules on Volta": (
        "dgx1-v100",
        UBUNTU,
        "{modules: open}",
        [
            (
                "DGX-1 V100 needs proprietary kernel modules: open ones support Turing and later, but its GPUs are Volta."
            )
        ],
    ),
    "Volta with CUDA 13": (
        "dgx1-v100",
        UBUNTU,
        '{cuda: "13.0"}',
        ["CUDA 13.0 no longer compiles for Volta: DGX-1 V100 supports CUDA 12 at most."],
    ),
    "Volta after branch 580": (
        "dgx1-v100",
        UBUNTU,
        "{driver: {version: 595.91.07}}",
        ["DGX-1 V100 is supported up to branch 580, but 595.91.07 is later: it dropped Volta."],
    ),
    "CUDA 13 on driver 535": (
        "dgx-h100",
        UBUNTU,
        '{driver: {branch: "535"}, cuda: "13.2"}',
        ["CUDA 13.2 needs driver >= 580 (minor-version compatibility), not 535.309.01."],
    ),
    "a CUDA release that does not exist": (
        "dgx-h100",
        UBUNTU,
        '{cuda: "13.9"}',
        [
            "CUDA 13.9 is not in the shipped table of 2026-11-23, whose last release is 13.3.",
            (
                "CUDA 13.9 is not in the shipped table of 2026-11-20 for NVIDIA's repository on ubuntu-24.04, which lists "
                "12.4, 12.6, 12.8, 12.9, 13.0, 13.1, 13.2 and 13.3."
            ),
        ],
    ),
    "CUDA 13 from Debian's archive": (
        "t4-4x",
        "debian-12",
        '{source: distribution, cuda: "13.0"}',
        [
            "CUDA 13.0 needs driver >= 580 (minor-version compatibility), not 535.261.03.",
            "Debian's own repository for debian-12 has no CUDA 13.0; it has 11.8.",
        ],
    ),
    "NVSwitches with Debian's archive": (
        "dgx-a100",
        "debian-12",
        "{source: distribution}",
        [NO_FABRIC.replace("HGX B200", "DGX A100")],
    ),
    "NVSwitches where nobody knows": (
        "dgx-h100",
        "debian-13",
        "{}",
        [
            (
                "DGX H100 has NVSwitches and needs nvidia-fabricmanager and libnvidia-nscq at the driver's version, which the shipped table of 2026-11-20 for NVIDIA's repository on debian-13 does not list."
            )
        ],
    ),
    "Debian 13's driver and its headers": (
        "t4-4x",
        "debian-13",
        "{source: distribution}",
        [BAD_PAIR],
    ),
    "the backported driver and the first headers": (
        "t4-4x",
        "debian-13",
        "{source: distribution, driver: {version: 550.163.01}, kernel: 6.12.107+deb13-amd64}",
        [BAD_PAIR.replace("6.12.117", "6.12.107")],
    ),
    "Debian 12's open driver and the security kernel": (
        "t4-4x",
        "debian-12",
        "{source: distribution, kernel: 6.1.0-56-amd64}",
        [
            (
                "nvidia-open-kernel-dkms 535.261.03-1 does not build against the headers of linux 6.1.192 "
                "(debian-12): pci_resize_resource takes more arguments there."
            )
        ],
    ),
    "GB200 without IMEX": (
        "dgx-gb200",
        UBUNTU,
        "{imex: false}",
        [
            (
                "GB200 NVL72 shares one NVLink domain with other nodes and needs IMEX on each of them; "
                "`imex: false` disables it."
            )
        ],
    ),
    "IMEX with nothing to do": (
        "dgx-h100",
        UBUNTU,
        "{imex: true}",
        ["DGX H100 shares no NVLink domain with other nodes, so IMEX is not needed."],
    ),
    "container toolkit in two versions": (
        "dgx-h100",
        UBUNTU,
        f"{{container_toolkit: {MIXED}}}",
        [
            "The container toolkit's four packages must have the same version; the declared ones are 1.19.1 and 1.20.0."
        ],
    ),
    "DCGM from Debian's archive": (
        "t4-4x",
        "debian-12",
        "{source: distribution, dcgm: 4.6.0}",
        ["Debian's own repository for debian-12 has no DCGM 4.6.0; it has none."],
    ),
    "DCGM from a mirror without an index": (
        "t4-4x",
        "debian-13",
        "{source: mirror, dcgm: 4.6.0}",
        [
            "DCGM 4.6.0 is not in the shipped table of 2026-11-20 for the mirror on debian-13, which lists none."
        ],
    ),
    "below the minimum-security table": (
        "l40s-8x",
        "debian-12",
        '{source: distribution, security: enforce, cuda: "none"}',
        ["Driver 535.261.03 is below the minimum-security version of its branch, 535.309.01."],
    ),
    "a branch the security table does not know": (
        "t4-4x",
        UBUNTU,
        "{driver: {version: 610.57.04}, security: enforce}",
        ["The minimum-security table has no row for driver branch 610."],
    ),
    "DOCA 3.3 and Secure Boot without a key": (
        "l40s-8x",
        "debian-13",
        "{ofed: doca, doca: 3.3.0, secure_boot: true}",
        [
            DKMS,
            (
                "From DOCA 3.3 on, DKMS builds the OFED modules, unsigned; with Secure Boot those of 3.3.0 load only if the site's signing key (MOK) is enrolled."
            ),
        ],
    ),
    "DOCA where it is not known": (
        "l40s-8x",
        "debian-12",
        "{ofed: doca}",
        ["DOCA-Host 3.2.3 is not in the shipped table of 2026-11-23 for debian-12, which lists no release."],
    ),
    "a driver nobody offers": (
        "t4-4x",
        "debian-13",
        "{driver: {version: 580.173.02}}",
        [
            (
                "Driver 580.173.02 is not in the shipped table of 2026-11-20 for NVIDIA's repository on debian-13, which "
                "lists 610.57.04."
            )
        ],
    ),
    "a version without these modules": (
        "t4-4x",
        "debian-12",
        "{source: distribution, driver: {version: 535.309.01}, modules: open}",
        ["Debian's own repository has driver 535.309.01 without open modules."],
    ),
    "a distribution nobody has read": (
        "t4-4x",
        UBUNTU,
        "{source: distribution}",
        ["The shipped table of 2026-11-23 does not list ubuntu-24.04's own archive."],
    ),
    "a release no table has yet": (
        "t4-4x",
        "ubuntu-26.04",
        "{}",
        ["The shipped table of 2026-11-23 does not list ubuntu-26.04's NVIDIA repository."],
    ),
    "an EL release no table has yet": (
        "t4-4x",
        "rocky-10",
        "{}",
        ["The shipped table of 2026-11-23 does not list rocky-10's NVIDIA repository."],
    ),
    "a kernel that is not there": (
        "t4-4x",
        "debian-12",
        "{source: distribution, kernel: 6.6.6-amd64}",
        [
            (
                "debian-12's archive as read on 2026-11-20 has no kernel 6.6.6-amd64; it has 6.1.0-50-amd64 and "
                "6.1.0-56-amd64."
            ),
        ],
    ),
    "what no kernel is called": (
        "t4-4x",
        UBUNTU,
        "{kernel: newest}",
        ["newest is not a kernel release of ubuntu-24.04."],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_refused_with_these_words(tmp_path, name):
    sku, os, stack, expected = TABLE[name]
    cluster = load_cluster(write_cluster(tmp_path, {sku: os}, stack))
    solution = solve(cluster, shipped_tables(), Index())
    (refused,) = solution.refused
    assert (refused.sku, refused.os) == (sku, os)
    assert [reason.message for reason in refused.reasons] == expected
    assert solution.lock.groups == ()


HINTS = [
    ("t4-4x", "debian-13", "{dcgm: 4.6.0}", [INDEX_HINT]),
    ("t4-4x", "debian-12", "{source: distribution, dcgm: 4.6.0}", [None]),
    ("dgx-b300", UBUNTU, '{driver: {branch: "570"}}', ["e.g. `driver: {version: 580.173.02}`"]),
    ("dgx-b300", UBUNTU, '{cuda: "12.8"}', ['set `cuda: "12.9"` or a later release']),
    ("t4-4x", "ubuntu-26.04", "{}", [INDEX_HINT]),
    ("t4-4x", UBUNTU, "{source: distribution}", ["set `gpu_stack.source: nvidia`"]),
    ("t4-4x", UBUNTU, "{kernel: newest}", ["use the output of `uname -r`, e.g. `6.8.0-139-generic`"]),
]


@pytest.mark.parametrize(("sku", "os", "stack", "hints"), HINTS)
def test_what_to_do(tmp_path, sku, os, stack, hints):
    cluster = load_cluster(write_cluster(tmp_path, {sku: os}, stack))
    (refused,) = solve(cluster, shipped_tables(), Index()).refused
    assert [reason.hint for reason in refused.reasons] == hints


def test_there_are_enough_of_them():
    assert len(TABLE) >= 20


OWN = """\
skus:
  own:
    vendor: Example
    description: A server of ours with GPUs
    sockets: 1
    cores_per_socket: 8
    threads_per_core: 2
    memory_mib: 65536
    gpus: {model: X, gres_type: x, count: 1, memory_mib: 24576}
    sources: [{text: "the site's own order", read: 2026-11-20}]
"""


def test_a_site_sku_that_says_too_little_is_refused_and_not_guessed(tmp_path):
    cluster = load_cluster(write_cluster(tmp_path, {"own": UBUNTU}, "{}", OWN))
    (refused,) = solve(cluster, shipped_tables(), Index()).refused
    assert [reason.message for reason in refused.reasons] == [
        "The SKU own does not declare its GPU architecture, which determines modules and driver.",
        "The SKU own does not declare whether its GPUs are connected by NVSwitches.",
    ]


def test_a_site_sku_that_says_enough_wins(tmp_path):
    more = OWN.replace(
        "memory_mib: 24576", "memory_mib: 24576, architecture: ada, nvswitch: none, nvlinks: 0"
    )
    cluster = load_cluster(write_cluster(tmp_path, {"own": UBUNTU}, "{}", more))
    (group,) = solve(cluster, shipped_tables(), Index()).lock.groups
    assert (group.sku, group.driver_version, group.fabricmanager) == ("own", "580.173.02", False)
