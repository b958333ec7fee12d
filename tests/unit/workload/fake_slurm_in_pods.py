"""A control plane whose kubectl talks to an API server in memory, and by `exec` to a slurmctld in memory."""

from __future__ import annotations

import shlex

from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole
from rackwright.workload.slurm.pods import Container, RunsSlurmPods
from tests.factories import RunsKube, make_cluster, make_node
from tests.unit.workload.fake_kubernetes import FakeKubernetes
from tests.unit.workload.fake_slurm import FakeSlurm

INSIDE = ["exec", "--namespace", "hpc", "slurmctld-0", "--container", "slurmctld", "--"]


class RunsPods(RoleOptions, RunsSlurmPods):
    """Options of a role that runs Slurm in pods; stands for the role slurm_on_kubernetes."""

    @property
    def controller(self):
        return Container("hpc", "slurmctld-0", "slurmctld")


def slurm_in_pods(*workers):
    """A head with the control plane, and workers with a kubelet and slurmd's pod."""
    return make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options={"kubernetes": RunsKube()}),
        *(
            make_node(name, 20 + number, options={"kubernetes": RunsKube(), "pods": RunsPods()})
            for number, name in enumerate(workers)
        ),
    )


class SlurmAndKubernetes(FakeSlurm):
    """The shell of both. `nodes` are Slurm's, `kube.nodes` those of Kubernetes; steps are pods."""

    def __init__(self, *names):
        self.kube = FakeKubernetes(*names)
        self.order = []
        """Which of the two was asked, for each command."""
        super().__init__(*names)

    reply = property(lambda self: self.kube.reply, lambda self, value: setattr(self.kube, "reply", value))
    steps = property(lambda self: self.kube.steps, lambda self, _: None)

    def run(self, node, command, *, stdin=None, timeout):
        words = shlex.split(command)
        if "exec" not in words:
            self.order.append("kubernetes")
            return self.kube.run(node, command, stdin=stdin, timeout=timeout)
        assert words[words.index("exec") : -1] == [*INSIDE, "sh", "-c"]
        if self.kube.silent:
            return self.kube.run(node, "kubectl version", timeout=timeout)
        self.order.append("slurm")
        return super().run(node, words[-1], timeout=timeout)
