"""What several dashboards share: short forms of panels, pieces of expressions, colours of states."""

from __future__ import annotations

from typing import Any

from rackwright.dashboards.model import Colour, Expression, Kind, Panel, Thresholds, Unit, Variable

NODE_STATES = {
    "has jobs": Colour.BUSY,
    "idle": Colour.GOOD,
    "drained": Colour.WARN,
    "down": Colour.BAD,
    "allocated": Colour.BUSY,
    "mixed": Colour.PARTLY,
    "draining": Colour.NOTICE,
}
"""What nodes do in Slurm."""
JOB_STATES = {"running": Colour.BUSY, "pending": Colour.NOTICE}
NONE_IS_GOOD = Thresholds(((1, Colour.WARN),))
"""Of what there should be none of."""
ANY_IS_BAD = Thresholds(((1, Colour.BAD),))
GPU_HEAT = Thresholds(((75, Colour.NOTICE), (85, Colour.BAD)))
"""Cards throttle at 85 to 95 degrees (DCGM_FI_DEV_SLOWDOWN_TEMP has each card's own)."""
FULLNESS = Thresholds(((0.8, Colour.NOTICE), (0.9, Colour.BAD)))
USE = Thresholds(((0.4, Colour.NOTICE), (0.7, Colour.GOOD)), base=Colour.BAD)
"""Of GPUs that a job holds; below 40 % is what the queue calls waste."""
ANSWERS = {1.0: ("up", Colour.GOOD), 0.0: ("down", Colour.BAD)}

RACK = Variable("rack", "Rack", "rackwright_declared_cpus", "rack", several=True)
LEAF = Variable("leaf", "Leaf", "rackwright_declared_cpus", "leaf", several=True)
NODE = Variable("node", "Node", "rackwright_declared_cpus", "node")
PARTITION = Variable("partition", "Partition", "slurm_partition_nodes", "partition", several=True)
JOB = Variable("job", "Job", "slurm_job_info", "job")

_STATE = 'slurm_node_state{{state=~"{}"}}'
_DOWN = _STATE.format("down|fail|not_responding")
_OUT = _STATE.format("drained|draining|maint")
BY_STATE = (
    (
        f"count(group by (node) ({_STATE.format('allocated|mixed')}) unless on (node) ({_OUT} or {_DOWN}))",
        "has jobs",
    ),
    (f"count(group by (node) ({_STATE.format('idle')}) unless on (node) ({_OUT} or {_DOWN}))", "idle"),
    (f"count(group by (node) ({_OUT}) unless on (node) {_DOWN})", "drained"),
    (f"count(group by (node) ({_DOWN}))", "down"),
)
"""Each node once: in Slurm it is in several states when it is down and drained, or drains with a job."""
IN_USE = "slurm_job_gpu * on (node, gpu) group_left () max by (node, gpu) ({})"
"""An expression for each GPU that a job holds; a GPU that two jobs share counts for both."""


def node_power(selector: str) -> str:
    """Watts of each node: by its BMC's own measurement (DCMI), or by the sensor that is named after it."""
    named = f'{selector},name=~"(?i).*(consumption|total.?power).*"'
    return f"max by (node, rack) (ipmi_dcmi_power_consumption_watts{{{selector}}} or on (node) ipmi_power_watts{{{named}}})"


def each_gpu(metric: str, selector: str) -> str:
    """One series for each GPU: DCGM's own change with the job that has the GPU, and MIG instances have one each."""
    return f"max by (node, gpu) ({metric}{{{selector}}})"


def held(expression: str) -> str:
    """An expression of GPUs for those that jobs hold, with the label `job`."""
    return IN_USE.format(expression)


def owned(expression: str) -> str:
    """An expression with the label `job`, and whose job it is."""
    return f"({expression}) * on (job) group_left (user, account) slurm_job_info"


def counted(what: str, of: str) -> str:
    """How many series there are, 0 where there is none; nothing where `of` is gone too, so that missing data does not look like zero."""
    return f"count({what}) or 0 * max({of})"


def time(title: str, unit: Unit, description: str, *expressions: tuple[str, str], **more: Any) -> Panel:  # noqa: ANN401
    """A chart over time, of (expression, legend)."""
    return _panel(Kind.TIME, title, unit, description, expressions, more)


def stat(title: str, unit: Unit, description: str, *expressions: tuple[str, str], **more: Any) -> Panel:  # noqa: ANN401
    """A number."""
    return _panel(Kind.STAT, title, unit, description, expressions, {"width": 4, "height": 4, **more})


def bars(title: str, unit: Unit, description: str, *expressions: tuple[str, str], **more: Any) -> Panel:  # noqa: ANN401
    """A bar for each series."""
    return _panel(Kind.BARS, title, unit, description, expressions, more)


def heat(title: str, unit: Unit, description: str, *expressions: tuple[str, str], **more: Any) -> Panel:  # noqa: ANN401
    """A row of colours for each series."""
    return _panel(Kind.HEAT, title, unit, description, expressions, more)


def racks(title: str, unit: Unit, description: str, expression: str, **more: Any) -> Panel:  # noqa: ANN401
    """A cell for each node."""
    given = {"width": 8, "height": 9, "leads_to": ("node",), **more}
    return _panel(Kind.RACKS, title, unit, description, ((expression, "{{node}}"),), given)


def states(title: str, description: str, *expressions: tuple[str, str], **more: Any) -> Panel:  # noqa: ANN401
    """A row of named states for each series."""
    return _panel(Kind.STATES, title, Unit.STATE, description, expressions, more)


def table(
    title: str,
    description: str,
    columns: tuple[str, ...],
    *values: tuple[str, str, Unit],
    **more: Any,  # noqa: ANN401
) -> Panel:
    """Labels and values of series, of (expression, title, unit)."""
    made = tuple(Expression(text, title, unit) for text, title, unit in values)
    leads_to = tuple(name for name in columns if name in ("node", "job"))
    given = {"columns": columns, "leads_to": leads_to, **more}
    return Panel(title, Kind.TABLE, made[0].unit or Unit.NUMBER, description, made, **given)


def _panel(
    kind: Kind,
    title: str,
    unit: Unit,
    description: str,
    expressions: tuple[tuple[str, str], ...],
    more: dict[str, Any],
) -> Panel:
    made = tuple(Expression(text, legend) for text, legend in expressions)
    return Panel(title, kind, unit, description, made, **more)
