"""The checker on this machine (`--on here`): its deploy, planned and applied by this process."""

from __future__ import annotations

from functools import partial
from typing import Any

from rackwright.drift.declaration import Declaration
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster


class Here:
    """What would change on this machine to make it the checker, or to remove it; planned on creation.

    RackwrightError if that cannot be planned or applied.
    """

    def __init__(
        self, cluster: Cluster, declared: Declaration, *, wanted: bool, connector: type[Any] | None = None
    ) -> None:
        # these load pyinfra, which only this command needs in the command-line process
        from rackwright.drift.checker_deploy import install_here, uninstall_here
        from rackwright.engine.this_machine import ThisMachine

        deploy = partial(install_here if wanted else uninstall_here, declared=declared)
        self._machine = ThisMachine(cluster, deploy, *([connector] if connector else []))
        plan = self._machine.plan()
        if plan.error is not None:
            raise _refused(plan.error)
        self.operations = plan.operations

    def apply(self) -> None:
        """Execute the plan."""
        if self.operations:
            outcome = self._machine.apply()
            if not outcome.ok:
                raise _refused(outcome.error or "it failed")


def _refused(why: str) -> RackwrightError:
    return RackwrightError(
        f"This machine could not be set up as the checker: {why}",
        hint="push mode needs root here (or passwordless sudo) and systemd",
    )
