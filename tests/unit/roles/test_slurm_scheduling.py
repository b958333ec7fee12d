"""Backfill window, billing, power, settings by release, releases without support."""

from __future__ import annotations

from datetime import date

import pytest

from rackwright.osfamily.known import os_release
from rackwright.roles.slurm import scheduling, texts
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.support import SUPPORTED_UNTIL, support_warnings
from tests.unit.roles.fake_host import errors_in
from tests.unit.roles.slurm_clusters import DGX_SKU, HEAD_SKU, cluster, dgx, lab, node, small

RELEASES = ("22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05")


def of(**given):
    return SlurmOptions.model_validate(given)


def found(made):
    return list(made.primary.options["slurm"].problems(made))


def line(text, key):
    return next((one for one in text.splitlines() if one.startswith(f"{key}=")), None)


@pytest.mark.parametrize(
    ("limits", "parameters"),
    [
        (("01:00:00",), ()),
        (("1-00:00:00", "12:00:00"), ()),
        (("2-00:00:00", "12:00:00"), ("bf_window=2880", "bf_resolution=120")),
        (("1-00:00:01",), ("bf_window=1441", "bf_resolution=120")),
        (("7-00:00:00",), ("bf_window=10080", "bf_resolution=420")),
        (("UNLIMITED", "1-00:00:00"), ("bf_window=10080", "bf_resolution=420")),
        (("UNLIMITED", "14-00:00:00"), ("bf_window=20160", "bf_resolution=600")),
        (("90-00:00:00",), ("bf_window=43200", "bf_resolution=600")),  # Slurm refuses more than 30 days
    ],
)
def test_the_backfill_window_holds_the_longest_job(limits, parameters):
    partitions = {f"p{i}": {"max_time": limit, "default": i == 0} for i, limit in enumerate(limits)}
    options = of(partitions=partitions, scheduler_parameters=[])
    assert scheduling.scheduler_parameters(options) == parameters


def test_a_declared_window_or_resolution_wins():
    assert scheduling.scheduler_parameters(of(scheduler_parameters=["bf_window=60"])) == ("bf_window=60",)
    assert scheduling.scheduler_parameters(of(scheduler_parameters=["bf_resolution=300"])) == (
        "bf_resolution=300",
        "bf_window=10080",
    )


def billed(weights, cpus, memory_gib, gpus):
    """What Slurm bills with MAX_TRES: the largest, cut to a whole number."""
    return int(
        max(
            cpus * weights.get("CPU", 0),
            memory_gib * weights.get("Mem", 0),
            gpus * weights.get("GRES/gpu", 0),
        )
    )


def test_a_job_is_billed_its_largest_share_of_a_gpu_node():
    made = dgx()
    options = made.primary.options["slurm"]
    weights = scheduling.billing_weights(made, options, options.partitions["main"])
    memory = 1992294 / 1024
    assert billed(weights, 224, memory, 8) == 800
    assert billed(weights, 8, 10, 8) == 800  # all GPUs, hardly a CPU
    assert billed(weights, 112, 10, 1) in (399, 400)  # half the CPUs
    assert billed(weights, 1, memory / 2, 0) in (399, 400)  # half the memory
    assert billed(weights, 1, 1, 0) == 3
    assert line(texts.slurm_conf(made, options), "PriorityFlags") == "PriorityFlags=MAX_TRES"


def mixed(slurm=None, mig=None):
    return cluster(
        "c",
        node("head1", "10.0.0.1", "head", sku=HEAD_SKU, primary=True),
        node("cpu1", "10.0.0.2", "worker", sku=HEAD_SKU),
        node("gpu1", "10.0.0.3", "worker", sku=DGX_SKU, mig=mig or {}),
        slurm=slurm,
    )


CPU_AND_GPU = {"cpu": {"nodes": "cpu1", "default": True}, "gpu": {"nodes": "gpu1"}}


@pytest.mark.parametrize(
    ("options", "weights", "flags"),
    [
        (of(), {"main": {"CPU": 1.0, "GRES/gpu": 100.0}}, ("MAX_TRES",)),
        (
            of(partitions=CPU_AND_GPU, billing={"gpu": 56}),
            {"cpu": {}, "gpu": {"CPU": 2.0, "Mem": 0.2302, "GRES/gpu": 56.0}},
            ("MAX_TRES",),
        ),
        (
            of(partitions=CPU_AND_GPU, billing={"by": "sum"}),
            {"cpu": {}, "gpu": {"CPU": 1.0, "GRES/gpu": 100.0}},
            (),
        ),
        (
            of(
                partitions={
                    **CPU_AND_GPU,
                    "old": {"nodes": "gpu1", "tres_billing_weights": {"GRES/gpu": 7}},
                }
            ),
            {"cpu": {}, "gpu": {"CPU": 1.0, "GRES/gpu": 100.0}, "old": {"GRES/gpu": 7.0}},
            (),
        ),
        (of(partitions={"cpu": {"nodes": "cpu1", "default": True}}), {"cpu": {}}, ()),
    ],
)
def test_billing_weights(options, weights, flags):
    made = mixed(options)
    assert {
        name: scheduling.billing_weights(made, options, one) for name, one in options.partitions.items()
    } == weights
    assert scheduling.priority_flags(made, options) == flags


def test_mig_instances_share_what_their_gpus_cost():
    options = of(partitions={"main": {"nodes": "gpu1", "default": True}})
    made = mixed(options, mig={"1g.10gb": 7})
    weights = scheduling.billing_weights(made, options, options.partitions["main"])
    assert weights["GRES/gpu"] == 14.2857
    assert 799 <= billed(weights, 0, 0, 56) <= 800


def test_clusters_without_gpus_are_billed_as_slurm_does():
    text = texts.slurm_conf(small(), SlurmOptions())
    assert "TRESBillingWeights" not in text
    assert line(text, "PriorityFlags") is None


SAVING = {"suspend_program": "/opt/site/off", "resume_program": "/opt/site/on"}


def test_reboots_have_half_an_hour_with_and_without_power_saving():
    for options in (SlurmOptions(), of(power_saving=SAVING)):
        text = texts.slurm_conf(small(), options)
        assert line(text, "ResumeTimeout") == "ResumeTimeout=1800"
        assert line(text, "SuspendTimeout") == "SuspendTimeout=300"
    assert line(texts.slurm_conf(small(), SlurmOptions()), "SuspendTime") is None


def test_power_saving():
    options = of(
        partitions={"main": {"default": True}, "night": {}},
        power_saving={
            **SAVING,
            "suspend_minutes": 30,
            "resume_rate": 10,
            "exclude_nodes": ["node3"],
            "exclude_partitions": ["night"],
        },
    )
    made = small(options)
    assert found(made) == []
    block = (
        texts.slurm_conf(made, options).partition("# Idle nodes are powered off\n")[2].partition("\n\n")[0]
    )
    assert block.splitlines() == [
        "SuspendProgram=/opt/site/off",
        "ResumeProgram=/opt/site/on",
        "SuspendTime=1800",
        "SuspendRate=60",
        "ResumeRate=10",
        "SuspendExcNodes=node[1,3]",  # node1 is the head
        "SuspendExcParts=night",
        "SuspendExcStates=DOWN,DRAIN,FAIL,INVALID_REG,MAINTENANCE,NOT_RESPONDING",
    ]


@pytest.mark.parametrize("name", ["suspend_program", "resume_program"])
def test_half_a_power_saving_is_refused(name):
    (message,) = errors_in(SlurmOptions, {"power_saving": {name: "/opt/site/x"}})
    other = {"suspend_program": "resume_program", "resume_program": "suspend_program"}[name]
    assert message == f"power saving needs both programs, and {other} is missing"


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (
            lab(of(power_saving={**SAVING, "exclude_nodes": ["wroker1"]})),
            (
                "power_saving.exclude_nodes[0]",
                "wroker1 is not declared under nodes.",
                "did you mean `worker1`?",
            ),
        ),
        (
            lab(of(power_saving={**SAVING, "exclude_partitions": ["mian"]})),
            ("power_saving.exclude_partitions[0]", "There is no partition mian.", "did you mean `main`?"),
        ),
        (
            dgx(of(power_saving={**SAVING, "suspend_exc_states": ["DRAIN"]}), os_release("debian-12")),
            (
                "power_saving.suspend_exc_states",
                "SuspendExcStates needs Slurm 23.02 or newer.",
                "leave it out, or take newer packages",
            ),
        ),
    ],
)
def test_power_saving_that_is_refused(made, problem):
    assert found(made) == [problem]


@pytest.mark.parametrize("release", RELEASES)
def test_settings_by_release(release):
    options = of(packages={"source": "schedmd", "release": release}, power_saving={**SAVING}, topology="tree")
    made = dgx(options)
    assert found(made) == []
    text = texts.slurm_conf(made, options)
    year, month = (int(part) for part in release.split("."))
    private = (
        "NamespaceType=namespace/tmpfs"
        if (year, month) >= (25, 11)
        else "JobContainerType=job_container/tmpfs"
    )
    assert [one for one in text.splitlines() if "/tmpfs" in one] == [private]
    assert ("SuspendExcStates=" in text) is ((year, month) >= (23, 2))
    detect = texts.gres_conf(made, options)
    assert ("AutoDetect=nvidia" in detect) is ((year, month) >= (24, 11))


@pytest.mark.parametrize(
    ("release", "today", "warned"),
    [
        ("22.05", date(2026, 11, 23), "ended in 2023-12, without a fix for CVE-2025-43904;"),
        ("23.02", date(2026, 11, 23), "ended in 2024-11, without a fix for CVE-2025-43904;"),
        ("23.11", date(2026, 11, 23), "ended in 2025-05;"),
        ("24.11", date(2026, 11, 23), "ended in 2026-05;"),
        ("25.05", date(2026, 11, 30), None),
        ("25.05", date(2026, 12, 1), "ended in 2026-11;"),
        ("25.11", date(2026, 11, 23), None),
        ("26.05", date(2026, 11, 23), None),
    ],
)
def test_releases_without_support_are_warned_of(release, today, warned):
    options = of(packages={"source": "schedmd", "release": release})
    warnings = list(support_warnings(options, small(options), today))
    if warned is None:
        assert warnings == []
        return
    ((path, sentence, hint),) = warnings
    assert path == "packages.release"
    assert sentence.startswith(f"SchedMD's support of Slurm {release} {warned}")
    assert "node[1-3]" in sentence
    assert hint == "take packages from SchedMD: `packages: {source: schedmd, release: '26.05'}`"


def test_the_options_warn_and_a_lab_does_not():
    old = dgx(os=os_release("debian-12"))
    assert [path for path, _, _ in old.primary.options["slurm"].warnings(old)] == ["packages.release"]
    made = lab()
    assert list(support_warnings(SlurmOptions(), made, date(2030, 1, 1))) == []
    unknown = dgx(os=os_release("rocky-10"))
    assert list(support_warnings(SlurmOptions(), unknown, date(2030, 1, 1))) == []


def test_every_release_that_is_accepted_has_an_end():
    assert {f"{year}.{month:02}" for year, month in SUPPORTED_UNTIL} == set(RELEASES)
    for release in RELEASES:
        of(packages={"release": release})
