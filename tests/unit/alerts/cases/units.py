"""Cases of rackwright.alerts.units."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import HEAD, NODE, head, node

CASES = (
    Case(
        alert="SlurmdDown",
        series={
            node(
                "node_systemd_unit_state", name="slurmd.service", state="active", type="notify"
            ): "1*2 0*5 1*3"
        },
        fires=240,
        labels={**NODE, "name": "slurmd.service"},
        severity="critical",
        summary="gpu1: slurmd is not running",
        description="slurmd is not running on gpu1. Its jobs run on unattended, and after SlurmdTimeout slurmctld sets the node DOWN and they are lost. Start it: systemctl restart slurmd.",
        heals=420,
        under=(
            {
                node(
                    "node_systemd_unit_state", name="slurmd.service", state="active", type="notify"
                ): "1*2 0*2 1*6"
            },
        ),
    ),
    Case(
        alert="MungeDown",
        series={
            node(
                "node_systemd_unit_state", name="munge.service", state="active", type="forking"
            ): "1*2 0*4 1*3"
        },
        fires=180,
        labels={**NODE, "name": "munge.service"},
        severity="critical",
        summary="gpu1: munge is not running",
        description="munged is not running on gpu1. No Slurm command and no daemon there can prove who it is; on a head nothing in the cluster can. Start it: systemctl restart munge.",
        heals=360,
        under=(
            {
                node(
                    "node_systemd_unit_state", name="munge.service", state="active", type="forking"
                ): "1*2 0*1 1*6"
            },
        ),
    ),
    Case(
        alert="SlurmctldDown",
        series={
            head(
                "node_systemd_unit_state", name="slurmctld.service", state="active", type="notify"
            ): "1*2 0*4 1*3"
        },
        fires=180,
        labels={**HEAD, "name": "slurmctld.service"},
        severity="critical",
        summary="slurmctld is not running on head1",
        description="slurmctld is not running on head1. Running jobs go on, but none starts or ends properly, and every Slurm command fails. Read journalctl -u slurmctld there, then start it.",
        heals=360,
        under=(
            {
                head(
                    "node_systemd_unit_state", name="slurmctld.service", state="active", type="notify"
                ): "1*2 0*1 1*6"
            },
        ),
    ),
    Case(
        alert="SlurmdbdDown",
        series={
            head(
                "node_systemd_unit_state", name="slurmdbd.service", state="active", type="notify"
            ): "1*2 0*5 1*3"
        },
        fires=240,
        labels={**HEAD, "name": "slurmdbd.service"},
        severity="critical",
        summary="slurmdbd is not running on head1",
        description="slurmdbd is not running on head1. slurmctld keeps accounting records in memory until it is back and drops them when its queue is full. Start it: systemctl restart slurmdbd.",
        heals=420,
        under=(
            {
                head(
                    "node_systemd_unit_state", name="slurmdbd.service", state="active", type="notify"
                ): "1*2 0*2 1*6"
            },
        ),
    ),
    Case(
        alert="FabricManagerDown",
        series={
            node(
                "node_systemd_unit_state", name="nvidia-fabricmanager.service", state="active", type="forking"
            ): "1*2 0*5 1*3"
        },
        fires=240,
        labels={**NODE, "name": "nvidia-fabricmanager.service"},
        severity="critical",
        summary="gpu1: nvidia-fabricmanager.service is not running",
        description="nvidia-fabricmanager.service is not running on gpu1. CUDA programs fail there with error 802 although nvidia-smi lists every GPU. Drain the node and start it.",
        heals=420,
        under=(
            {
                node(
                    "node_systemd_unit_state",
                    name="nvidia-fabricmanager.service",
                    state="active",
                    type="forking",
                ): "1*2 0*2 1*6"
            },
        ),
    ),
    Case(
        alert="GpuServiceDown",
        series={
            node(
                "node_systemd_unit_state", name="nvidia-dcgm.service", state="active", type="simple"
            ): "1*2 0*8 1*3"
        },
        fires=420,
        labels={**NODE, "name": "nvidia-dcgm.service"},
        severity="warning",
        summary="gpu1: nvidia-dcgm.service is not running",
        description="nvidia-dcgm.service is not running on gpu1. Jobs work, but GPU faults go unseen without DCGM, and without persistence mode each start of a job takes seconds longer. Start it: systemctl restart nvidia-dcgm.service.",
        heals=600,
        under=(
            {
                node(
                    "node_systemd_unit_state", name="nvidia-dcgm.service", state="active", type="simple"
                ): "1*2 0*5 1*6"
            },
        ),
    ),
    Case(
        alert="OpensmDown",
        series={
            head(
                "node_systemd_unit_state", name="opensm.service", state="active", type="simple"
            ): "1*2 0*4 1*3"
        },
        fires=180,
        labels={**HEAD, "name": "opensm.service"},
        severity="critical",
        summary="The subnet manager on head1 is not running",
        description="opensm is not running on head1. Links that are up stay up; any that drops, and any node that boots, stays out of the fabric until a subnet manager runs. See whether a standby took over: sminfo.",
        heals=360,
        under=(
            {
                head(
                    "node_systemd_unit_state", name="opensm.service", state="active", type="simple"
                ): "1*2 0*1 1*6"
            },
        ),
    ),
    Case(
        alert="FirewallDown",
        series={
            node(
                "node_systemd_unit_state", name="rackwright-firewall.service", state="active", type="oneshot"
            ): "1*2 0*4 1*3"
        },
        fires=180,
        labels={**NODE, "name": "rackwright-firewall.service"},
        severity="critical",
        summary="gpu1: the firewall is not loaded",
        description="The firewall's rules are not loaded on gpu1; every listening port is open to any host that reaches the node. Load them: systemctl restart rackwright-firewall.",
        heals=360,
        under=(
            {
                node(
                    "node_systemd_unit_state",
                    name="rackwright-firewall.service",
                    state="active",
                    type="oneshot",
                ): "1*2 0*1 1*6"
            },
        ),
    ),
    Case(
        alert="UnitFailed",
        series={
            node(
                "node_systemd_unit_state", name="chrony.service", state="failed", type="forking"
            ): "0*2 1*5 0*3"
        },
        fires=240,
        labels={**NODE, "name": "chrony.service"},
        severity="warning",
        summary="gpu1: chrony.service has failed",
        description="chrony.service has failed on gpu1, and systemd has given up. Read why, then start it: journalctl -u chrony.service -n 100.",
        heals=420,
        under=(
            {
                node(
                    "node_systemd_unit_state", name="chrony.service", state="failed", type="forking"
                ): "0*10",
                node("node_systemd_unit_state", name="slurmd.service", state="failed", type="notify"): "1*10",
            },
            {
                node(
                    "node_systemd_unit_state", name="chrony.service", state="failed", type="forking"
                ): "0*2 1*2 0*6"
            },
        ),
    ),
    Case(
        alert="OtherUnitsFailed",
        series={
            node("node_systemd_units", state="failed"): "0*2 2*15 1*4",
            node(
                "node_systemd_unit_state", name="chrony.service", state="failed", type="forking"
            ): "0*2 1*19",
        },
        fires=720,
        labels={**NODE, "state": "failed"},
        severity="warning",
        summary="gpu1: failed units: 2",
        description="Failed units on gpu1: 2, more than those that are reported by name. See which: systemctl --failed.",
        heals=1020,
        under=({node("node_systemd_units", state="failed"): "0*2 1*19"},),
    ),
)
