"""Limits of remote commands, as the description of ssh.command_timeout_seconds states them."""

import pytest

from rackwright.claims.check import Check
from rackwright.command import CommandResult
from rackwright.data import Site
from rackwright.drift.check import NODE_SECONDS
from rackwright.factcache import fetch
from rackwright.factcache.cache import ClassCache
from rackwright.health import run as health
from rackwright.model.settings import Ssh
from rackwright.pyinfra_driver.connector import host_data
from rackwright.why import ask
from rackwright.workload.slurm import control
from tests.factories import make_cluster


def cluster_with(seconds):
    cluster = make_cluster()
    return cluster.model_copy(
        update={"ssh": cluster.ssh.model_copy(update={"command_timeout_seconds": seconds})}
    )


def test_every_command_of_plan_and_apply_has_it():
    cluster = cluster_with(77)
    assert all(host_data(Site(cluster, node))["_timeout"] == 77 for node in cluster.nodes)


@pytest.mark.parametrize(("declared", "limit"), [(77, 77), (900, 120)])
def test_the_batch_of_facts_has_it_up_to_two_minutes(monkeypatch, tmp_path, declared, limit):
    cluster, used = cluster_with(declared), []

    def run(client, command, *, sudo, stdin, timeout, limit):
        used.append(timeout)
        return CommandResult(command, fetch.TIMED_OUT, "", "")

    monkeypatch.setattr(
        fetch, "connect", lambda cluster, node: type("Client", (), {"close": lambda self: None})()
    )
    monkeypatch.setattr(fetch, "run", run)
    node = cluster.nodes[0]
    cache = ClassCache(tmp_path, "class", "key")
    cache.store(node.name, [{"kind": "shell", "command": str(number)} for number in range(9)], None)
    assert fetch.open_node(cluster, node, cache).unreachable
    assert used == [limit]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("its state has {} s at most", fetch.ANSWER_SECONDS),
        ("verify ({} s unless", Check("a claim", str).timeout_seconds),
        ("health and why ({} s)", max(health.SECONDS + 5, ask.SECONDS, control._ONE_NODE_SECONDS)),
        ("drain and resume ({} s)", control._COMMAND_SECONDS),
        ("drift checker ({} s)", NODE_SECONDS),
    ],
)
def test_its_description_names_the_other_limits(text, seconds):
    assert text.format(seconds) in Ssh.model_fields["command_timeout_seconds"].description
