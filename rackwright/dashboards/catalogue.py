"""All dashboards, in the order in which they are shown."""

from __future__ import annotations

from rackwright.dashboards.burnin import BURNIN
from rackwright.dashboards.fabric import FABRIC
from rackwright.dashboards.gpu import GPU
from rackwright.dashboards.health import HEALTH
from rackwright.dashboards.job import JOB_PAGE
from rackwright.dashboards.model import Dashboard
from rackwright.dashboards.node import NODE_PAGE
from rackwright.dashboards.overview import OVERVIEW
from rackwright.dashboards.power import POWER
from rackwright.dashboards.queue import QUEUE
from rackwright.dashboards.racks import RACKS
from rackwright.dashboards.storage import STORAGE
from rackwright.dashboards.waste import WASTE

DASHBOARDS: tuple[Dashboard, ...] = (
    OVERVIEW,
    RACKS,
    NODE_PAGE,
    GPU,
    JOB_PAGE,
    FABRIC,
    STORAGE,
    QUEUE,
    WASTE,
    HEALTH,
    BURNIN,
    POWER,
)
BY_NAME = {dashboard.name: dashboard for dashboard in DASHBOARDS}
