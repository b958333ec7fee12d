"""Accounts, users and QOS: recorded slurmdbd 24.11 output read, compared, turned into sacctmgr commands."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.facts.slurm import AccountingRecords
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.records import declared_records
from rackwright.workload.slurm.accounting import sacctmgr_commands, undeclared
from rackwright.workload.slurm.records import (
    BUILT_IN_TRES,
    Member,
    Records,
    Unread,
    countable,
    limited_tres,
    normal,
    parse,
    read_command,
)
from tests.unit.roles.fake_host import commands, planned
from tests.unit.roles.slurm_clusters import lab

RECORDED = Path(__file__).parent / "recorded" / "slurm" / "records.txt"
"""From a rack of Debian 13 containers, 2026-11-20; its TRES from another one, 2026-11-23."""
DECLARED = {
    "qos": {
        "high": {
            "priority": 1000,
            "preempt": ["low"],
            "flags": ["NoReserve", "DenyOnLimit"],
            "max_tres_per_user": {"cpu": 4, "mem": 204800, "gres/gpu": 8},
            "max_wall": "2-00:00:00",
            "usage_factor": 2,
            "grace_seconds": 60,
            "preempt_mode": "requeue",
        },
        "low": {},
    },
    "accounts": {
        "lab1": {"parent": "phys"},
        "phys": {
            "description": "Physics Dept",
            "organization": "Sci",
            "fairshare": 10,
            "qos": ["normal", "high"],
            "default_qos": "high",
            "limits": {"grp_tres": {"cpu": 10}, "max_jobs": 2, "max_wall": "12:00:00"},
        },
    },
    "users": {
        "alice": {
            "default_account": "lab1",
            "accounts": ["phys"],
            "admin": "operator",
            "fairshare": 3,
            "limits": {"max_jobs": 1},
        },
        "bob": {"default_account": "phys"},
    },
}


def there():
    records = parse(RECORDED.read_text().splitlines())
    assert records is not None
    return replace(records, clusters=frozenset({"lab"}))  # recorded on a rack of another name


def wanted(given=None):
    cluster = lab(SlurmOptions.model_validate(DECLARED if given is None else given))
    return declared_records(cluster, cluster.primary.options["slurm"])


def lines(records, want, *, prune=True):
    return [" ".join(command.arguments) for command in sacctmgr_commands("lab", records, want, prune=prune)]


def test_what_was_recorded():
    records = there()
    assert records.qos["high"]["maxtrespu"] == "cpu=4,gres/gpu=8,mem=204800"
    assert records.tres == BUILT_IN_TRES | {"gres/gpu"}
    assert records.accounts["lab1"] == {
        "parent": "phys",
        "fairshare": "1",
        "description": "lab1",
        "organization": "root",
    }
    assert records.users["alice"] == {"defaultaccount": "lab1", "adminlevel": "operator"}
    assert records.members[Member("alice", "lab1")] == {"fairshare": "3", "maxjobs": "1"}


def test_only_the_burnin_account_differs_from_the_recording():
    # It was made before burnin got every QOS.
    assert lines(there(), wanted()) == [
        "modify account where name=burnin cluster=lab set qos=high,low,normal"
    ]


@pytest.mark.parametrize(
    "output",
    ["", "# cluster\nlab\n# qos\n", RECORDED.read_text().replace("# complete\n", "")],
    ids=["nothing", "cut short", "without its end"],
)
def test_an_answer_that_is_not_whole_is_none(output):
    assert parse(output.splitlines()) is None
    assert AccountingRecords().process(output.splitlines()) is (Unread.SILENT if output else None)


def test_a_stopped_slurmdbd_differs_from_a_missing_one():
    assert AccountingRecords().process(["# stopped"]) is Unread.STOPPED
    assert AccountingRecords().process([]) is None


def test_from_nothing():
    assert lines(Records(), wanted()) == [
        "add cluster lab",
        (
            "add qos high description=high priority=1000 preemptmode=requeue gracetime=60 "
            "flags=DenyOnLimit,NoReserve usagefactor=2 maxwall=2880 maxtrespu=cpu=4,gres/gpu=8,mem=204800"
        ),
        "add qos low description=low priority=0 preemptmode=cluster gracetime=0 usagefactor=1",
        "modify qos where name=high set preempt=low",
        (
            "add account burnin cluster=lab parent=root description=acceptance and burn-in runs "
            "organization=root fairshare=1 qos=high,low,normal"
        ),
        (
            "add account phys cluster=lab parent=root description=physics dept organization=sci fairshare=10 "
            "grptres=cpu=10 maxjobs=2 maxwall=720 qos=high,normal defaultqos=high"
        ),
        "add account lab1 cluster=lab parent=phys description=lab1 organization=root fairshare=1",
        "add user alice account=lab1 cluster=lab defaultaccount=lab1 adminlevel=operator fairshare=3 maxjobs=1",
        "add user alice account=phys cluster=lab fairshare=3 maxjobs=1",
        "add user bob account=phys cluster=lab defaultaccount=phys adminlevel=none fairshare=1",
        "add user root account=burnin cluster=lab fairshare=1",
    ]


def test_a_limit_that_a_new_slurmdbd_cannot_count_waits_for_slurmctld():
    """sacctmgr 24.11 to a new slurmdbd: `no TRES known by type gres/gpu`, and the whole command is refused."""
    want = wanted()
    assert limited_tres(want) == {"cpu", "mem", "gres/gpu"}
    first = countable(want, BUILT_IN_TRES)
    assert first.qos["high"]["maxtrespu"] == "cpu=4,mem=204800"
    assert first.accounts == want.accounts
    assert not any("gres/gpu" in line for line in lines(Records(), first))
    there = replace(first, clusters=frozenset({"lab"}))
    assert lines(there, want) == ["modify qos where name=high set maxtrespu=cpu=4,gres/gpu=8,mem=204800"]
    assert countable(want, BUILT_IN_TRES | {"gres/gpu"}) == want


_AFTER = "Update the limits on resources that slurmctld counts"


def test_the_plan_of_a_new_head_has_these_limits_after_slurmctld():
    cluster = lab(SlurmOptions.model_validate(DECLARED))
    plan = planned(cluster, cluster.primary)
    names = [operation.name for operation in plan.operations]
    assert names.index("Start slurmctld with its settings") < names.index(_AFTER)
    (script,) = commands(plan, "Update accounts, users and QOS")
    assert "gres/gpu" not in script
    (script,) = commands(plan, _AFTER)
    assert script.count("\nrun ") == 1
    assert "run modify qos where name=high set maxtrespu=cpu=4,gres/gpu=8,mem=204800" in script


def test_without_such_limits_nothing_is_left_for_later():
    cluster = lab()
    assert _AFTER not in [operation.name for operation in planned(cluster, cluster.primary).operations]


@pytest.mark.parametrize(
    ("counts", "status", "shown"),
    [("gres|gpu", 0, ""), ("cpu|", 1, "slurmctld has not registered gres/gpu within 2 s\n")],
    ids=["registered", "never registered"],
)
def test_the_limits_wait_for_what_slurmctld_registers(tmp_path, counts, status, shown):
    cluster = lab(SlurmOptions.model_validate(DECLARED))
    (script,) = commands(planned(cluster, cluster.primary), _AFTER)
    fake = tmp_path / "sacctmgr"
    fake.write_text(
        f'#!/bin/sh\ncase "$*" in *tres*format*) echo "{counts}" ;; *show*) ;; *) echo "$*" >>{tmp_path}/ran ;; esac\n'
    )
    fake.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", script.replace("seq 60", "seq 2").replace("-lt 60", "-lt 2").replace("within 60", "within 2")],
        capture_output=True, text=True, timeout=240, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (status, shown)
    assert (tmp_path / "ran").exists() == (status == 0)


def test_what_is_not_declared_any_more_goes_children_first():
    assert lines(there(), wanted({})) == [
        "remove user where name=alice cluster=lab",
        "remove user where name=bob cluster=lab",
        "remove account where name=lab1",
        "remove account where name=phys",
        "remove qos where name=high",
        "remove qos where name=low",
    ]


def test_nothing_goes_without_prune_and_it_is_named():
    assert SlurmOptions().prune is False
    assert lines(there(), wanted({}), prune=False) == []
    assert undeclared("lab", there(), wanted({})) == [
        "user alice",
        "user bob",
        "account lab1",
        "account phys",
        "qos high",
        "qos low",
    ]
    assert undeclared("lab", there(), wanted()) == []


def test_a_slurmdbd_elsewhere_is_asked_over_the_network():
    assert "systemctl" in read_command("lab")
    elsewhere = read_command("lab", local=False)
    assert "systemctl" not in elsewhere
    assert elsewhere.startswith("command -v sacctmgr")


def test_qos_and_accounts_stay_where_another_cluster_may_use_them():
    shared = replace(there(), clusters=frozenset({"lab", "other"}))
    assert not [line for line in lines(shared, wanted({})) if " qos " in line]
    assert "remove account where name=phys cluster=lab" in lines(shared, wanted({}))


def test_what_is_cleared_and_moved():
    given = {
        "qos": {"high": {"max_tres_per_user": {"cpu": 4}}, "low": {"preempt": ["high"]}},
        "preempt": "qos",
        "accounts": {"lab1": {}, "phys": {"parent": "lab1", "qos": ["low"], "default_qos": "low"}},
        "users": {"alice": {"default_account": "phys"}},
    }
    assert lines(there(), wanted(given)) == [
        (
            "modify qos where name=high set priority=0 preemptmode=cluster gracetime=0 usagefactor=1 "
            "maxtrespu=cpu=4,gres/gpu=-1,mem=-1 preempt= flags=-1 maxwall=-1"
        ),
        "modify qos where name=low set preempt=high",
        "modify account where name=burnin cluster=lab set qos=high,low,normal",
        "modify account where name=lab1 cluster=lab set parent=root",
        "modify account where name=phys set description=phys organization=root",
        (
            "modify account where name=phys cluster=lab set parent=lab1 fairshare=1 qos=low defaultqos=low "
            "grptres=cpu=-1 maxjobs=-1 maxwall=-1"
        ),
        "modify user where name=alice account=phys cluster=lab set fairshare=1 maxjobs=-1",
        "modify user where name=alice cluster=lab set defaultaccount=phys adminlevel=none",
        "remove user where name=bob cluster=lab",
        "remove user where name=alice account=lab1 cluster=lab",
    ]


def test_memberships_of_a_partition_are_not_declared():
    records = there()
    members = {**records.members, Member("bob", "phys", "main"): {"fairshare": "1"}}
    assert lines(replace(records, members=members), wanted())[-1] == (
        "remove user where name=bob account=phys cluster=lab partition=main"
    )


@pytest.mark.parametrize(
    ("column", "printed", "plain"),
    [
        ("maxwall", "2-00:00:00", "2880"),
        ("maxwall", "12:00:00", "720"),
        ("maxwall", "UNLIMITED", ""),
        ("gracetime", "00:01:00", "60"),
        ("usagefactor", "2.000000", "2"),
        ("grptres", "mem=1.50T,cpu=4", "cpu=4,mem=1572864"),
        ("flags", "NoReserve,DenyOnLimit", "DenyOnLimit,NoReserve"),
        ("description", "Physics", "physics"),
        ("maxjobs", "", ""),
    ],
)
def test_normal_values(column, printed, plain):
    assert normal(column, printed) == plain
    assert normal(column, plain) == plain


def test_the_fact_says_nothing_where_slurmdbd_does_not_run():
    done = subprocess.run(
        ["sh", "-c", read_command("lab")], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0
    assert AccountingRecords().process(done.stdout.splitlines()) is None


def test_the_operation_waits_for_slurmdbd_and_reports_what_slurm_refuses(tmp_path):
    cluster = lab()
    (script,) = commands(planned(cluster, cluster.primary), "Update accounts, users and QOS")
    fake = tmp_path / "sacctmgr"
    fake.write_text(
        "#!/bin/sh\n"
        'case "$*" in *show*) exit 0 ;; *burnin*) echo " Problem" >&2; exit 1 ;; esac\n'
        f'echo "$*" >>{tmp_path}/ran\n'
    )
    fake.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, timeout=240, env=environment, check=False
    )
    assert done.returncode == 1
    assert "add account burnin cluster=lab" in done.stderr
    assert "Problem" in done.stderr
    assert (tmp_path / "ran").read_text() == "-i add cluster lab\n"


def test_the_operation_gives_up_on_a_slurmdbd_that_is_silent(tmp_path):
    cluster = lab()
    (script,) = commands(planned(cluster, cluster.primary), "Update accounts, users and QOS")
    fake = tmp_path / "sacctmgr"
    fake.write_text("#!/bin/sh\necho 'Connection refused' >&2\nexit 1\n")
    fake.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", script.replace("60", "2")],
        capture_output=True,
        text=True,
        timeout=240,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "slurmdbd did not answer within 2 s: Connection refused\n")


def test_the_password_of_a_database_of_the_site_is_never_generated():
    assert SlurmOptions().supplied_secrets == ()
    site = SlurmOptions(accounting={"storage_password": "accounting_db_password"})
    assert site.supplied_secrets == ("accounting_db_password",)
