"""What a driver in this process reports, kept."""

from __future__ import annotations

from rackwright.plan.node_plan import NodeOutcome, NodePlan


class Reports:
    """A Reporter (rackwright.pyinfra_driver.driver) that keeps plans and outcomes, by node."""

    def __init__(self) -> None:
        self.plans: dict[str, NodePlan] = {}
        self.outcomes: dict[str, NodeOutcome] = {}

    def planned(self, plan: NodePlan) -> None:
        """A node was compared with its declaration."""
        self.plans[plan.node] = plan

    def started(self, node: str, role: str, name: str) -> None:
        """An operation begins."""

    def finished(self, node: str, role: str, name: str, changed: bool, error: str | None) -> None:
        """An operation ended."""

    def applied(self, outcome: NodeOutcome) -> None:
        """The apply of a node ended."""
        self.outcomes[outcome.node] = outcome
