"""Power, energy and cooling."""

from __future__ import annotations

from rackwright.dashboards.model import Colour, Dashboard, Row, Thresholds, Unit
from rackwright.dashboards.parts import RACK, bars, heat, node_power, owned, stat, table, time

_RACK = 'rack=~"$rack"'
_IN = f"{{{_RACK}}}"
_NODES = node_power(_RACK)
_INLET = 'ipmi_temperature_celsius{rack=~"$rack",name=~"(?i).*(inlet|ambient).*"}'
_WARM = Thresholds(((27, Colour.NOTICE), (32, Colour.BAD)))
"""ASHRAE recommends inlets of 18 to 27 degrees; class A2 allows 10 to 35."""


_KWH = "sum_over_time({}[$__range:5m]) * 300 / 3.6e6"
_BY_ACCOUNT = f"sum by (account) ({_KWH.format('account:gpu_power_watts:sum')})"
_CARBON = "* on () group_left () rackwright_declared_carbon_grams_per_kwh"
_BY_JOB = _KWH.format(f"({owned('job:gpu_power_watts:sum')})")


_NOW = Row(
    "Now",
    (
        stat(
            "Power of the nodes",
            Unit.WATTS,
            "Whole nodes, as their BMCs measure.",
            (f"sum({_NODES})", "nodes"),
        ),
        stat(
            "Power of the GPUs",
            Unit.WATTS,
            "All GPUs, as DCGM measures: usually two thirds of what their nodes draw.",
            (f"sum(DCGM_FI_DEV_POWER_USAGE{_IN})", "GPUs"),
        ),
        stat(
            "Of what GPUs may take",
            Unit.RATIO,
            "GPU power against the declared limit of all GPUs. Circuits are planned for 1; training is usually at 0.7 to 0.85.",
            (
                (
                    f"sum(DCGM_FI_DEV_POWER_USAGE{_IN}) / "
                    f"sum(rackwright_declared_gpus{_IN} * rackwright_declared_gpu_power_watts > 0)"
                ),
                "of the limit",
            ),
            low=0,
            high=1,
        ),
        stat(
            "Energy",
            Unit.KILOWATT_HOURS,
            "Of GPUs that jobs held, over the span that is shown.",
            (f"sum({_BY_ACCOUNT})", "energy"),
            empty="No job held a GPU.",
        ),
        stat(
            "Carbon",
            Unit.GRAMS,
            "That energy with the declared carbon factor of the site's power.",
            (f"sum({_BY_ACCOUNT}) {_CARBON}", "CO2"),
            empty="No job held a GPU, or no carbon factor is declared.",
        ),
        stat(
            "Warmest inlet",
            Unit.CELSIUS,
            "Air that enters the warmest node.",
            (f"max({_INLET})", "inlet"),
            thresholds=_WARM,
        ),
    ),
)
_POWER = Row(
    "Power",
    (
        time(
            "Power by rack",
            Unit.WATTS,
            "Whole nodes by rack. Compare with what each rack's circuits are planned for.",
            (f"sum by (rack) ({_NODES})", "{{rack}}"),
            stacked=True,
            low=0,
        ),
        time(
            "GPU power by rack",
            Unit.WATTS,
            "GPUs by rack. Swings of the whole room are jobs that step together; power supplies and circuits feel them.",
            (f"sum by (rack) (DCGM_FI_DEV_POWER_USAGE{_IN})", "{{rack}}"),
            stacked=True,
            low=0,
        ),
        time(
            "CPU power",
            Unit.WATTS,
            "CPU packages by rack, from the processors' own counters.",
            (f"sum by (rack) (rate(node_rapl_package_joules_total{_IN}[$__rate_interval]))", "{{rack}}"),
            stacked=True,
            low=0,
        ),
        heat(
            "Power of each node",
            Unit.WATTS,
            "A row for each node. A dark row in a bright block is a node that does not take part in the job it holds.",
            (_NODES, "{{node}}"),
            low=0,
        ),
    ),
)
_ENERGY = Row(
    "Energy",
    (
        bars(
            "Energy by account",
            Unit.KILOWATT_HOURS,
            "Of the GPUs that jobs held, over the span that is shown.",
            (_BY_ACCOUNT, "{{account}}"),
            empty="No job held a GPU.",
        ),
        bars(
            "Carbon by account",
            Unit.GRAMS,
            "The same energy with the declared carbon factor.",
            (f"{_BY_ACCOUNT} {_CARBON}", "{{account}}"),
            empty="No job held a GPU, or no carbon factor is declared.",
        ),
        table(
            "Energy by job",
            "The twenty largest of the span that is shown.",
            ("job", "user", "account"),
            (f"topk(20, sum by (job, user, account) ({_BY_JOB}))", "energy", Unit.KILOWATT_HOURS),
            width=24,
            height=10,
            empty="No job held a GPU.",
        ),
    ),
)
_COOLING = Row(
    "Cooling",
    (
        time(
            "Inlet temperature",
            Unit.CELSIUS,
            "By node. All lines up: the room's cooling; one rack: hot air comes back; one node: blanking plates or a blocked "
            "filter.",
            (f"max by (node) ({_INLET})", "{{node}}"),
            thresholds=_WARM,
            leads_to=("node",),
        ),
        time(
            "Fans",
            Unit.ROTATIONS_PER_MINUTE,
            "The slowest fan of each node. One far below its neighbours fails soon; all at the top: the room is too warm.",
            (f"min by (node) (ipmi_fan_speed_rpm{_IN})", "{{node}}"),
            low=0,
            leads_to=("node",),
        ),
        time(
            "Warmest GPU by rack",
            Unit.CELSIUS,
            "A rack that is warmer than the others at the same power gets too little air or water.",
            (f"max by (rack) (DCGM_FI_DEV_GPU_TEMP{_IN})", "{{rack}}"),
        ),
        time(
            "Heat of the CPUs",
            Unit.CELSIUS,
            "The warmest sensor that the kernel reads, by node.",
            (f"max by (node) (node_hwmon_temp_celsius{_IN})", "{{node}}"),
            leads_to=("node",),
        ),
    ),
)
POWER = Dashboard(
    "power",
    "Power and cooling",
    "What the nodes draw, which account and job used how much energy, and whether the air is cool enough.",
    (_NOW, _POWER, _ENERGY, _COOLING),
    (RACK,),
    since="24h",
)
