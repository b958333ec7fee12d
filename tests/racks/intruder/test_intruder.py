"""Each seed alone and all at once: found by plan, drift and verify; repaired; kept; silent where it is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.racks.intruder.seeds import KEY, SEEDS, Seed
from tests.racks.site import Site, operations
from tests.racks.verified import named, results

pytestmark = [pytest.mark.lab, pytest.mark.proof]
NODES = ("head1", "worker1")
ROLES = ("access", "time", "integrity")
QUARANTINE = "/var/lib/rackwright/quarantine"


def pairs() -> list[tuple[tuple[str, Seed], ...]]:
    """Each seed alone on a node, on both nodes at once; the nodes change places."""
    return [
        tuple(zip(NODES if at % 4 else NODES[::-1], SEEDS[at : at + 2], strict=False))
        for at in range(0, len(SEEDS), 2)
    ]


def said(plan: dict[str, Any], node: str, seed: Seed) -> str:
    """The plan's lines for the operation that finds a seed."""
    (mine,) = (one["operations"] for one in plan["nodes"] if one["node"] == node)
    return str([one["changes"] for one in mine if (one["role"], one["name"]) == seed.operation])


def failed(site: Site, *roles: str) -> set[tuple[str, str, str]]:
    """What verify fails, of the checks of these roles: those of access log in everywhere, which takes long."""
    options = [word for role in roles for word in ("--role", role)]
    return named(results(site, None, *options).get("FAIL", []))


@contextmanager
def seeded(site: Site, *seeds: tuple[str, Seed]) -> Iterator[None]:
    try:
        for node, seed in seeds:
            site.on(node, seed.by_hand)
        yield
    finally:
        for node, seed in seeds:
            site.on(node, f"set +e; {seed.undo}; true")


@pytest.mark.smoke
def test_nothing_is_found_on_a_node_as_it_was_installed(site: Site):
    assert operations(site.plan(0)) == set()
    (node,) = {node["executions"] for node in site.plan(0)["nodes"]}
    assert node == 1
    assert failed(site, *ROLES) == set()


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: " and ".join(seed.what for _, seed in pair))
def test_each_alone_is_found_by_plan_and_verify_repaired_and_kept(
    site: Site, pair: tuple[tuple[str, Seed], ...]
):
    before = {node: site.on(node, f"ls {QUARANTINE} 2>/dev/null || :") for node in NODES}
    with seeded(site, *pair):
        plan = site.plan(2)
        wrong = failed(site, *{seed.check[0] for _, seed in pair})
        for node, seed in pair:
            assert (node, *seed.operation) in operations(plan), seed.what
            assert seed.says in said(plan, node, seed), seed.what
            assert (node, *seed.check) in wrong, seed.what
        site.converge()
        for node, seed in pair:
            if seed.kept:
                new = set(site.on(node, f"ls {QUARANTINE}").split()) - set(before[node].split())
                found = site.on(node, f"cd {QUARANTINE}; stat -c '%a %U' . {' '.join(sorted(new))}")
                assert set(found.splitlines()) == {"700 root"}
                site.on(node, f"ls {' '.join(f'{QUARANTINE}/{one}{seed.kept}' for one in new)}")
    assert failed(site, "integrity", "time") == set()


def test_all_at_once_are_drift_of_their_names_and_gone_after_one_apply(site: Site):
    site.converge()
    with seeded(site, *((node, seed) for node in NODES for seed in SEEDS if seed.undo != ":")):
        ran = site.cli("drift", str(site.file), "--json", expect=None)
        wrong = failed(site, *ROLES)
        for seed in SEEDS:
            if seed.undo != ":":
                assert seed.operation[1] in ran.out, seed.what
                assert {(node, *seed.check) for node in NODES} <= wrong, seed.what
        site.apply()
        assert operations(site.plan(0)) == set()
        warned = named(results(site, None, "--role", "integrity").get("WARN", []))
        assert {one for one in warned if one[1] == "integrity"} == {
            (node, "integrity", "only declared accounts have root's uid or a system password")
            for node in NODES
        }


def test_what_the_site_allows_is_left_alone(site: Site):
    allowed: dict[str, Any] = {}
    mine = [seed for seed in SEEDS if seed.allowed]
    for seed in mine:
        for option, value in seed.allowed.items():
            if isinstance(value, dict):
                kept = allowed.setdefault(option, {})
                for key, more in value.items():
                    kept[key] = [*kept.get(key, []), *more] if isinstance(more, list) else more
            else:
                allowed[option] = [*allowed.get(option, []), *value]

    def declare(content: dict[str, Any]) -> None:
        content["roles"]["integrity"] = allowed

    with seeded(site, *((node, seed) for node in NODES for seed in mine)), site.declaring(declare):
        planned = {one for one in operations(site.plan(2)) if one[1] == "integrity"}
        # sshd reads a file that is newer than its last start: that is the role access
        assert planned == set()
        assert failed(site, "integrity", "time") == set()
    site.converge()


def test_rackwright_is_never_cut_off(site: Site):
    """Not where its rule of sudo is in a file with a foreign one, and not where its key is beside one."""
    with seeded(site):
        rules = "rack ALL=(ALL:ALL) NOPASSWD: ALL\\nmallory ALL=(ALL) NOPASSWD: ALL\\n"
        site.on(
            "worker1",
            f"printf '{rules}' >/etc/sudoers.d/90-rack; echo '{KEY}' >>/home/rack/.ssh/authorized_keys",
        )
        site.converge()
        assert site.on("worker1", "cat /etc/sudoers.d/90-rack").split() == rules.split("\\n")[0].split()
        assert site.on("worker1", "grep -c . /home/rack/.ssh/authorized_keys").strip() == "1"
        assert site.on("worker1", "stat -c '%U %a' /home/rack/.ssh/authorized_keys").strip() == "rack 600"
