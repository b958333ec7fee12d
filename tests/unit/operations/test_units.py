"""The commands that bring units up, run by a shell with a systemctl that fails as the real one does."""

from __future__ import annotations

import shlex
import subprocess
from typing import ClassVar

import pytest

from rackwright.operations.units import _systemctl
from rackwright.roles.integrity.options import IntegrityOptions
from tests.factories import make_cluster, make_node
from tests.unit.pyinfra_driver.local import LocalRun, LocalShell


@pytest.mark.parametrize(
    ("verb", "failures", "exit_status", "calls"),
    [
        ("reload", 0, 0, ["reload", "is-active"]),
        ("reload", 1, 0, ["reload", "reload", "is-active"]),
        ("reload", 2, 1, ["reload", "reload", "status"]),
        ("restart", 1, 1, ["restart", "status"]),
        ("enable", 0, 0, ["enable"]),
    ],
)
def test_a_reload_that_lost_its_process_is_tried_again(verb, failures, exit_status, calls, tmp_path):
    (tmp_path / "systemctl").write_text(
        "#!/bin/sh\n"
        f'echo "$1" >>{tmp_path}/calls\n'
        f'[ "$1" = {verb} ] || exit 0\n'
        f"[ $(grep -c {verb} {tmp_path}/calls) -gt {failures} ]\n"
    )
    (tmp_path / "sleep").write_text("#!/bin/sh\nexit 0\n")
    for name in ("systemctl", "sleep"):
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", str(_systemctl(verb, "slurmd.service"))],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        check=False,
        timeout=60,
    )
    assert done.returncode == exit_status
    assert (tmp_path / "calls").read_text().split() == calls


EVIL = "/etc/systemd/system/a.service.d/evil.conf"
DEPLOY = "from rackwright.operations import units\nunits.unit(name='Run it', unit='a.service'{more})"


class Shown(LocalShell):
    """systemd shows one unit, which runs; nothing is done to it."""

    properties: ClassVar[str] = ""

    def execute(self, command, arguments):
        text = str(command)
        shown = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n" + Shown.properties
        return LocalShell.execute(self, f"printf %s {shlex.quote(shown)}" if "show" in text else "true", {})


def planned_unit(tmp_path, properties, options, more=""):
    Shown.properties = properties
    node = make_node("node1", 21, options={"integrity": options} if options else {})
    (plan,) = LocalRun(make_cluster(node), tmp_path, Shown).plan(DEPLOY.format(more=more)).values()
    assert plan.error is None
    return plan.operations


@pytest.mark.parametrize("properties", [f"DropInPaths=/usr/lib/a {EVIL}\n", f"FragmentPath={EVIL}\n"])
def test_a_file_of_a_unit_that_nothing_declares_goes_and_the_unit_starts_without_it(tmp_path, properties):
    (found,) = planned_unit(tmp_path, properties, IntegrityOptions())
    removal, restart = found.changes
    assert (removal.kind, removal.target, removal.after) == ("file", EVIL, None)
    assert (restart.target, restart.after, restart.because) == ("a.service", "restarted", f"{EVIL} changes")
    verbs = [
        verb
        for verb in ("rm -f", "daemon-reload", "systemctl restart")
        for command in found.commands
        if verb in command
    ]
    assert verbs == ["rm -f", "daemon-reload", "systemctl restart"]
    (found,) = planned_unit(tmp_path, properties, IntegrityOptions(), ", running=None")
    assert [change.target for change in found.changes] == [EVIL]


@pytest.mark.parametrize("options", [None, IntegrityOptions(allowed_drop_ins=(EVIL,))])
def test_a_file_that_is_allowed_or_of_which_no_role_asks(tmp_path, options):
    assert not planned_unit(tmp_path, f"DropInPaths={EVIL}\n", options)


@pytest.mark.parametrize(
    ("waits", "done"), [(", after_reboot=True", ["enabled"]), ("", ["enabled", "running"])]
)
def test_a_unit_that_needs_a_reboot_is_enabled_and_not_started(waits, done, tmp_path, monkeypatch):
    monkeypatch.setattr(Shown, "properties", "ActiveState=inactive\nUnitFileState=disabled\n")
    due = "from rackwright.operations import reboots\nreboots.due(name='See', target='driver', read='true', want='new')\n"
    run = LocalRun(make_cluster(make_node("node1", 21)), tmp_path, Shown)
    plan = run.plan(due + DEPLOY.format(more=waits))["node1"]
    assert [change.after for operation in plan.operations for change in operation.changes] == done
    assert [change.target for change in plan.reboot] == ["driver"]
    assert plan.after_reboot == (("Run it",) if waits else ())


@pytest.mark.parametrize(
    ("state", "more", "verbs"),
    [
        ("activating", "", ["start"]),
        ("activating", ", retries=True", []),
        ("failed", ", retries=True", ["start"]),
        ("active", ", retries=True", []),
    ],
)
def test_a_unit_that_tries_again_until_its_server_is_there_counts_as_running(state, more, verbs, tmp_path):
    found = planned_unit(tmp_path, f"ActiveState={state}\n", None, more)
    changes = [change.after for operation in found for change in operation.changes]
    assert changes == [{"start": "running"}[verb] for verb in verbs]


def test_its_start_is_done_although_it_is_not_active_yet():
    assert str(_systemctl("start", "a.service", retries=True)).startswith(
        "systemctl start a.service && ! systemctl is-failed --quiet a.service || "
    )
