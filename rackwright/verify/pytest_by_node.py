"""How pytest-xdist spreads tests over processes: all tests of a node go to the same one."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from rackwright.verify.pytest_backend import SCHEME, node_in


class ByNode(LoadScopeScheduling):  # type: ignore[misc]
    """Tests without a node are spread by module, as pytest-xdist does.

    After a process has died, pytest-xdist 3.8 may wait forever: it hands out tests that have ended, and begins the
    fatal test again in one new process after another (its issues 1323, 1327, 1371 and 1378). Here the fatal test
    has failed, and the new process gets what the dead one had not begun.
    """

    @cached_property
    def _nodes(self) -> frozenset[str]:
        hosts = str(self.config.option.hosts).split(",")
        return frozenset(host.removeprefix(f"{SCHEME}://") for host in hosts)

    def _split_scope(self, nodeid: str) -> str:
        return node_in(nodeid, self._nodes) or str(super()._split_scope(nodeid))

    def remove_node(self, node: WorkerController) -> str | None:
        """Take back what a process has not begun. Returns the test that it died in, if it died."""
        left = {
            scope: dict.fromkeys((test for test, done in tests.items() if not done), False)
            for scope, tests in self.assigned_work.pop(node).items()
        }
        fatal: str | None = next((test for tests in left.values() for test in tests), None)
        if fatal is None:
            return None
        del left[self._split_scope(fatal)][fatal]
        self.workqueue.update({scope: tests for scope, tests in left.items() if tests})
        for other in self.nodes:
            self._reschedule(other)
        return fatal

    def _assign_work_unit(self, node: WorkerController) -> None:
        with suppress(OSError):  # it has just died, and gives these tests back when its end is noticed
            super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        if node not in self.registered_collections:
            return  # it gets its share when it has collected
        super()._reschedule(node)
        # A process begins a test once it has the next one too, or knows that it is the last.
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)
