"""Cases of rackwright.alerts.slurm_nodes."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import GPU1, declared, node, slurm

CASES = (
    Case(
        alert="SlurmNodeDown",
        series={
            declared("node"): "1*10",
            slurm("slurm_node_state", node="gpu1", state="down"): "0*2 1*5 0*3",
            node("up"): "1*10",
        },
        fires=240,
        labels=GPU1,
        severity="critical",
        summary="gpu1 is DOWN in Slurm although it answers",
        description="Slurm has set gpu1 DOWN, and its jobs are lost, while the node itself answers. scontrol show node gpu1 has the reason; slurmd, munge or the node's configuration is at fault.",
        heals=420,
        under=(
            {node("up"): "0*10"},
            {slurm("slurm_node_state", node="gpu1", state="down"): "0*2 1*2 0*6"},
        ),
    ),
    Case(
        alert="SlurmNodeNotResponding",
        series={
            declared("node"): "1*10",
            slurm("slurm_node_state", node="gpu1", state="not_responding"): "0*2 1*5 0*3",
            node("up"): "1*10",
        },
        fires=240,
        labels=GPU1,
        severity="warning",
        summary="gpu1: slurmd does not answer slurmctld",
        description="slurmctld has had no answer from slurmd on gpu1 for 2 minutes, while the node itself answers. After SlurmdTimeout it is set DOWN and its jobs are lost. Look at slurmd there now.",
        heals=420,
        under=(
            {node("up"): "0*10"},
            {slurm("slurm_node_state", node="gpu1", state="not_responding"): "0*2 1*2 0*6"},
        ),
    ),
    Case(
        alert="SlurmNodeDrainedLong",
        series={
            declared("node"): "1*85",
            slurm(
                "slurm_node_drain_since_timestamp_seconds", node="gpu1", reason="fan, anna", user="root"
            ): "0*76 stale",
        },
        fires=266400,
        labels=GPU1,
        severity="warning",
        summary="gpu1 has been drained for 3d 2h 0m 0s",
        description="gpu1 has been drained for 3d 2h 0m 0s, and has not been repaired or resumed. Look up the reason, then repair, replace or resume it: rackwright why FILE gpu1.",
        heals=273600,
        under=(
            {
                slurm(
                    "slurm_node_drain_since_timestamp_seconds", node="gpu1", reason="fan, anna", user="root"
                ): "0*71 stale"
            },
        ),
        every=3600,
    ),
    Case(
        alert="SlurmNodesUnavailable",
        series={
            slurm("slurm_node_cpus", node="gpu1"): "128*12",
            slurm("slurm_node_cpus", node="gpu2"): "128*12",
            slurm("slurm_node_cpus", node="gpu3"): "128*12",
            slurm("slurm_node_cpus", node="gpu4"): "128*12",
            slurm("slurm_node_cpus", node="gpu5"): "128*12",
            slurm("slurm_node_cpus", node="gpu6"): "128*12",
            slurm("slurm_node_state", node="gpu1", state="drained"): "0*2 1*7 0*3",
        },
        fires=420,
        labels={},
        severity="critical",
        summary="17 % of the nodes are drained or down in Slurm",
        description="17 % of Slurm's nodes are drained, draining or down. That many do not break by themselves: look for what they have in common, such as a check that is wrong, a leaf, a file server. sinfo -R lists the reasons.",
        heals=540,
        under=({slurm("slurm_node_cpus", node="gpu7"): "128*12"},),
    ),
    Case(
        alert="SlurmGpusBelowDeclaration",
        series={
            declared("node"): "1*12",
            declared("gpus"): "8*12",
            slurm("slurm_node_gpus", node="gpu1"): "8*2 7*7 8*3",
        },
        fires=420,
        labels=GPU1,
        severity="warning",
        summary="gpu1 has 7 GPUs in Slurm, fewer than declared",
        description="Slurm knows 7 GPUs of gpu1, fewer than its SKU declares. The others are never used. Compare gres.conf with nvidia-smi -L there.",
        heals=540,
        under=({declared("gpus"): "7*12"},),
    ),
)
