"""The software role: trees, the profile script run by a real shell, problems and checks."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest

from rackwright.claims import mount_probe, patient
from rackwright.claims.check import CheckContext
from rackwright.model.storage import FilesystemPurpose
from rackwright.osfamily.known import RELEASES
from rackwright.osfamily.names import names
from rackwright.roles.software import texts, verify
from rackwright.roles.software.options import SoftwareOptions
from rackwright.roles.software.verify import CHECKS
from tests.factories import DEBIAN_13
from tests.unit.claims.test_patient import Here
from tests.unit.roles.fake_facts import files, installed
from tests.unit.roles.fake_host import FakeHost, content, errors_in, judged, planned
from tests.unit.roles.sites import site, worker
from tests.unit.roles.storage_sites import Mounts, nfs, with_storage

FILES, TREES, SHELL = (check.name for check in CHECKS)
TREE = "/software/modules"
CACHE = {"folder": "/software/lmod/cache", "timestamp": "/software/lmod/time"}
NODES = ("head1", "gpu1", "gpu2")


def software_site(given=None, *filesystems, os=DEBIAN_13):
    one = nfs("software", "/software", "10.9.0.200", purpose=FilesystemPurpose.SOFTWARE, nodes=NODES)
    options = {"mounts": Mounts(), "software": SoftwareOptions.model_validate(given or {})}
    return with_storage(site({}, os=os), *(filesystems or (one,)), options=options)


def options(made):
    return worker(made).options["software"]


def test_trees():
    made = software_site({"below": ["modules", "site/all"], "modulepath": ["/cvmfs/x.org/modules"]})
    assert options(made).trees(worker(made)) == (TREE, "/software/site/all", "/cvmfs/x.org/modules")
    assert "software" not in worker(software_site({}, nfs("state", "/s", nodes=NODES))).options
    assert len(errors_in(SoftwareOptions, {"below": ["../x"]})) == 1


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, None),
        ({"spider_cache": CACHE}, None),
        (
            {"spider_cache": CACHE, "cache": False},
            ("spider_cache", "`cache: false` ignores this cache.", "remove one of them"),
        ),
        ({"below": []}, ("below", "head1 has no module tree.", "e.g. `below: [modules]`")),
        (
            {"modulepath": [TREE]},
            ("modulepath", f"{TREE} is listed twice as a module tree of head1.", "name it once"),
        ),
    ],
)
def test_problems(given, problem):
    made = software_site(given)
    assert list(options(made).problems(made)) == ([problem] if problem is not None else [])


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_what_is_written(os):
    made = software_site({"spider_cache": CACHE}, os=os)
    plan = planned(made, worker(made))
    assert plan.error is None
    assert [op.name for op in plan.operations if op.role == "software"] == [
        "Install Lmod",
        "Create /etc/rackwright",
        f"Write {texts.PROFILE}",
        f"Write {texts.LMODRC}",
    ]
    assert content(plan, texts.LMODRC).splitlines()[1:] == [
        "scDescriptT = {",
        "  {",
        '    ["dir"] = "/software/lmod/cache",',
        '    ["timestamp"] = "/software/lmod/time",',
        "  },",
        "}",
    ]
    assert f"    export LMOD_RC={texts.LMODRC}\n" in content(plan, texts.PROFILE)
    assert texts.lmodrc(SoftwareOptions()) is None


def sourced(tmp_path, text, uid, **environment):
    (tmp_path / "id").write_text(f"#!/bin/sh\necho {uid}\n")
    (tmp_path / "id").chmod(0o755)
    done = subprocess.run(
        [
            "sh",
            "-c",
            f'{text}\n{text}\nprintf "%s\\n" "${{MODULEPATH:-}}" "${{LMOD_ALLOW_ROOT_USE:-}}" "${{LMOD_IGNORE_CACHE:-}}"',
        ],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def test_the_profile_script_run_twice_by_a_shell(tmp_path):
    made = software_site({"modulepath": ["/opt/modules"], "cache": False})
    text = texts.profile(worker(made), options(made))
    assert sourced(tmp_path, text, 2001) == [f"{TREE}:/opt/modules", "", "yes"]
    given = {"MODULEPATH": "/etc/modulefiles:/usr/share/modulefiles"}
    assert sourced(tmp_path, text, 2001, **given)[0] == f"{TREE}:/opt/modules:{given['MODULEPATH']}"
    assert sourced(tmp_path, text, 0) == ["", "no", ""]  # root's login waits for no server


# Checks


def command(program, *words):
    return " ".join(["python3 -IS -c", *map(shlex.quote, (program, *words))])


ALIVE = {"/software": {"seconds": 0.1, "blocks": 9, "available": 9, "files": 9, "files_available": 9}}
SHOWN = f"{TREE}:\ngcc/\ngcc/13.2\n\nstatus=0\npath={TREE}:/etc/lmod/modules\n"
ASKED = (
    f"runuser -u nobody -- env -i HOME=/ USER=nobody timeout -s KILL 20 bash -lc {shlex.quote(verify._SHELL)}"
)


def answers(made, alive=ALIVE, seen=None, shown=SHOWN):
    said = seen if isinstance(seen, str) else json.dumps({"reading": {TREE: 1} if seen is None else seen})
    lmod = names(worker(made).family, "lmod").packages
    return {
        **installed(worker(made).family, lmod),
        **files(texts.files(worker(made), options(made))),
        command(mount_probe.PROGRAM, "read", "/software", "5"): json.dumps(alive),
        command(patient.PROGRAM, "20", verify._LOOK, TREE): said,
        ASKED: shown,
    }


def result(name, given, always=None):
    made = software_site()
    return judged("software", CHECKS, name, made, worker(made), FakeHost(given, always))


@pytest.mark.parametrize("name", [FILES, TREES, SHELL])
def test_what_is_as_declared_passes(name):
    assert result(name, answers(software_site())).status == "PASS"


@pytest.mark.parametrize(
    ("name", "changes", "status", "evidence"),
    [
        (TREES, {"seen": {TREE: None}}, "FAIL", f"{TREE} is missing"),
        (TREES, {"alive": {"/software": {"error": "EIO", "text": "x"}}}, "FAIL", "/software cannot be read: EIO (x)"),
        (TREES, {"alive": {"/software": {"hangs": True, "seconds": 5}}}, "UNKNOWN", "/software does not answer within 5 s"),
        (TREES, {"seen": '{"hangs": true}'}, "UNKNOWN", f"{TREE} does not answer within 20 s"),
        (TREES, {"seen": '{"error": "EACCES", "text": "no"}'}, "FAIL", "the module trees cannot be read: EACCES (no)"),
        (TREES, {"seen": {}}, "UNKNOWN", "the node reported no tree"),
        (SHELL, {"shown": SHOWN.replace(f"path={TREE}:", "path=")}, "FAIL",
         f"MODULEPATH of a login shell lacks {TREE}: it is /etc/lmod/modules"),
        (SHELL, {"shown": SHOWN.replace("status=0", "status=127")}, "FAIL",
         "a login shell has no command `module`: Lmod is not started by /etc/profile"),
        (SHELL, {"shown": SHOWN.replace("status=0", "status=1")}, "FAIL", "`module avail` exited 1 in a login shell"),
        (SHELL, {"shown": SHOWN.replace(f"{TREE}:\n", "", 1)}, "FAIL",
         f"`module avail` lists nothing of {TREE}, which has entries"),
        (SHELL, {"shown": (137, "", "Killed")}, "UNKNOWN", "a login shell of nobody exited 137: Killed"),
        (SHELL, {"shown": "rubbish\n"}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_what_is_not_or_cannot_be_known(name, changes, status, evidence):
    one = result(name, answers(software_site(), **changes))
    assert (one.status, evidence in (None, one.evidence)) == (status, True), one


def test_files_that_are_missing_fail_and_rubbish_is_never_a_pass():
    made = software_site()
    assert (
        result(FILES, answers(made) | files({texts.PROFILE: None})).evidence == f"{texts.PROFILE} is missing"
    )
    family = worker(made).family
    lmod = names(family, "lmod").packages
    assert (
        result(FILES, answers(made) | installed(family, lmod, missing=lmod)).evidence == "not installed: lmod"
    )
    for name in (FILES, TREES, SHELL):
        assert result(name, {}).status == "UNKNOWN"
        for rubbish in ("", "command not ready\n"):
            assert result(name, {}, always=rubbish).status not in ("PASS", "WARN")


def test_the_look_at_trees_runs_for_real(tmp_path):
    (tmp_path / "modules" / "gcc").mkdir(parents=True)
    (tmp_path / "modules" / ".hidden").touch()
    made = software_site()
    context = CheckContext(made, worker(made), options(made), Here(), lambda name: Here())
    trees = (str(tmp_path / "modules"), str(tmp_path / "none"))
    assert patient.run(context, "x", verify._LOOK, *trees, seconds=20) == {trees[0]: 1, trees[1]: None}


def test_the_last_lines_of_a_shell_are_read():
    fake = verify._SHELL.replace("module -t avail", "module() { echo tree:; }; module -t avail")
    done = subprocess.run(
        ["sh", "-c", fake],
        env={"MODULEPATH": "/a:/b", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-2:] == ["status=0", "path=/a:/b"]
