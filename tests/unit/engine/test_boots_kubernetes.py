"""Before a reboot, a node of Kubernetes is asked for its own pods."""

from __future__ import annotations

import pytest

from rackwright.command import CommandResult
from rackwright.engine.boots import Boots
from rackwright.model.types import NodeRole, Platform
from tests.factories import RunsKube, make_cluster, make_node

ROLE = {"kubernetes": RunsKube()}
CLUSTER = make_cluster(
    make_node("head1", 10, NodeRole.HEAD, options=ROLE),
    make_node("w1", 20, options=ROLE, platform=Platform.VM),
)
BOOT = "0123abcd-0000-4000-8000-000000000001"
MARK = "rackwright-pods "


@pytest.mark.parametrize(
    ("pods", "why_not"),
    [
        ("", None),
        (f"{MARK}begin\n{MARK}end\n", None),
        (f"{MARK}begin\n{MARK}|ada|train|uid|w1|Running|||Job|train|\n{MARK}end\n", "a job is running on it"),
        (f"{MARK}begin\n{MARK}|ada|a|uid|w1|Running|||DaemonSet|a|\n{MARK}end\n", None),
        ("pods unknown\n", "a job is running on it"),
    ],
)
def test_a_node_with_a_job_is_not_rebooted(pods, why_not, tmp_path):
    class Shell:
        def run(self, node, command, *, stdin=None, timeout):
            assert "kubelet.conf" in command
            return CommandResult(command, 0, f"{BOOT}\n{pods}", "")

    before = Boots(CLUSTER, Shell(), 60, here=tmp_path / "none").before(["w1"])["w1"]
    assert (before.boot, before.why_not) == (BOOT, why_not)
