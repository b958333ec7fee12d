"""Plan and apply on the machine that rackwright runs on, which need not be a node of the cluster.

Unlike a run on nodes this loads pyinfra into the calling process: import it where it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from rackwright.data import Site
from rackwright.engine.reports import Reports
from rackwright.model.cluster import Cluster
from rackwright.plan.node_plan import NodeOutcome, NodePlan
from rackwright.pyinfra_driver.driver import Driver
from rackwright.pyinfra_driver.local import ThisMachineConnector

NAME = "here"


class ThisMachine:
    """One deploy on this machine, as root: through `sudo -n` where rackwright does not run as root."""

    def __init__(
        self, cluster: Cluster, deploy: Callable[[], object], connector: type[Any] = ThisMachineConnector
    ) -> None:
        become = {"become": "none" if os.geteuid() == 0 else "sudo"}
        seen = cluster.model_copy(update={"ssh": cluster.ssh.model_copy(update=become)})
        site = Site(seen, cluster.primary.model_copy(update={"name": NAME}))
        self._reports = Reports()
        self._driver = Driver([site], deploy, self._reports, connector=connector)

    def plan(self) -> NodePlan:
        """What the deploy would change here."""
        self._driver.plan()
        return self._reports.plans[NAME]

    def apply(self) -> NodeOutcome:
        """Execute what was planned."""
        self._driver.apply([NAME])
        return self._reports.outcomes[NAME]
