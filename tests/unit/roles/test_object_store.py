"""The object_store role: endpoints in the environment, mounted buckets, problems and checks."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from pyinfra.connectors.util import CommandOutput, OutputLine

from rackwright.claims import patient
from rackwright.facts.mounts import MountTable
from rackwright.model.storage import FilesystemPurpose
from rackwright.osfamily.known import RELEASES
from rackwright.osfamily.names import names
from rackwright.pyinfra_driver.offline import EmptyNode
from rackwright.roles.object_store import texts, verify
from rackwright.roles.object_store.options import ObjectStoreOptions
from rackwright.roles.object_store.verify import CHECKS
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.factories import DEBIAN_13
from tests.unit.roles.fake_facts import answer, asked, file, files, installed, unit
from tests.unit.roles.fake_host import FakeHost, claimed, content, errors_in, judged, planned
from tests.unit.roles.sites import site, worker
from tests.unit.roles.storage_sites import nfs, with_storage

FILES, ANSWERS, MOUNTED = (check.name for check in CHECKS)
ENDPOINT = {"url": "https://s3.example.com"}
PATH = "/data/sets"
MOUNT = {"endpoint": "site", "bucket": "sets", "access_key": "s3_access", "secret_key": "s3_secret"}
GIVEN = {"endpoints": {"site": ENDPOINT}, "mounts": {PATH: MOUNT}}
BARE = {"endpoints": {"site": ENDPOINT}}
UNIT = "rackwright-s3-data-sets.service"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
KEYS = "/etc/rackwright/object-store/rackwright-s3-data-sets.env"


def store_site(given=None, *filesystems, os=DEBIAN_13, **roles):
    options = {"object_store": ObjectStoreOptions.model_validate(given or GIVEN), **roles}
    return with_storage(site({}, os=os), *filesystems, options=options)


def options(made):
    return worker(made).options["object_store"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"endpoints": {}}, None),
        ({"endpoints": {"si-te": ENDPOINT}}, None),
        ({"endpoints": {"site": {"url": "s3.example.com"}}}, "Not a valid http or https URL."),
        ({**GIVEN, "default": "other"}, "`default` names other, which is not an endpoint."),
        (
            {**GIVEN, "mounts": {PATH: {**MOUNT, "endpoint": "b"}}},
            f"the mount {PATH} names b, which is not an endpoint.",
        ),
        ({**GIVEN, "mounts": {"/data": MOUNT}}, None),
    ],
)
def test_options_that_are_refused(given, message):
    (found,) = errors_in(ObjectStoreOptions, given)
    assert message in (None, found)


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (store_site(), None),
        (store_site({**GIVEN, "ca": "site"}, site_ca=SiteCaOptions()), None),
        (
            store_site({**GIVEN, "ca": "site"}),
            ("ca", "No role issues the site's certificates on head1.", "add `site_ca: {}` under `roles`"),
        ),
        (
            store_site(GIVEN, nfs("data", "/data", nodes=("gpu1",), purpose=FilesystemPurpose.DATA)),
            (
                f"mounts.{PATH}",
                f"{PATH} conflicts with /data, where gpu1 has data.",
                "mount each on a separate path",
            ),
        ),
        (
            store_site({**GIVEN, "ca": "/etc/ca.pem", "mounts": {PATH: {**MOUNT, "tool": "mountpoint-s3"}}}),
            (
                f"mounts.{PATH}.tool",
                "mountpoint-s3 trusts only the distribution's CAs, but `ca` is another file.",
                "e.g. `tool: rclone`",
            ),
        ),
    ],
)
def test_problems(made, problem):
    assert list(options(made).problems(made)) == ([problem] if problem is not None else [])


def test_plain_text_is_warned_of():
    made = store_site({"endpoints": {"site": {"url": "http://10.9.0.5:9000"}}})
    ((path, sentence, _),) = options(made).warnings(made)
    assert (path, sentence) == (
        "endpoints.site.url",
        "http://10.9.0.5:9000 is not encrypted: every hop on the path can read the data.",
    )
    assert list(options(store_site()).warnings(store_site())) == []


def test_login_shells_have_the_endpoint_and_keep_what_users_set(tmp_path):
    made = store_site({**GIVEN, "ca": "/etc/ca.pem"})
    text = texts.profile(worker(made), options(made))
    shown = (
        "AWS_ENDPOINT_URL_S3",
        "AWS_REGION",
        "AWS_CA_BUNDLE",
        "RCLONE_CONFIG_SITE_ENDPOINT",
        "RCLONE_CONFIG_SITE_ENV_AUTH",
    )
    asked_for = " ".join(f'"${name}"' for name in shown)
    done = subprocess.run(
        ["sh", "-c", f'{text}\nprintf "%s\\n" {asked_for}'],
        env={"AWS_REGION": "mine"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "https://s3.example.com",
        "mine",
        "/etc/ca.pem",
        "https://s3.example.com",
        "true",
    ]
    assert "SECRET" not in text
    assert "RCLONE" not in texts.profile(
        worker(made), options(store_site({"endpoints": {"site": ENDPOINT}, "rclone": False}))
    )


def test_the_service_of_a_mount():
    made = store_site(
        {**GIVEN, "mounts": {PATH: {**MOUNT, "prefix": "a/b/", "cache": "/scratch/s3", "cache_gib": 9}}}
    )
    text = texts.unit(worker(made), options(made), PATH)
    assert (
        "ExecStart=/usr/bin/rclone mount site:sets/a/b/ /data/sets --config /dev/null --read-only --allow-other "
        "--dir-cache-time 1m --vfs-cache-mode full --cache-dir /scratch/s3 --vfs-cache-max-size 9G\n"
    ) in text  # GiB; rclone before 1.56 (Ubuntu 22.04 has 1.53) refuses `9Gi`: fs/sizesuffix.go
    assert f"EnvironmentFile={KEYS}\nEnvironment=RCLONE_CONFIG_SITE_TYPE=s3\n" in text
    assert "RequiresMountsFor=/scratch/s3\n" in text
    other = store_site({**GIVEN, "mounts": {PATH: {**MOUNT, "tool": "mountpoint-s3"}}})
    text = texts.unit(worker(other), options(other), PATH)
    assert (
        "ExecStart=/usr/bin/mount-s3 sets /data/sets --foreground --read-only --allow-other --endpoint-url "
        "https://s3.example.com --region us-east-1 --force-path-style\n"
    ) in text
    assert options(made).unit_files(worker(made)) == (UNIT_PATH,)
    assert options(made).supplied_secrets == ("s3_access", "s3_secret")
    assert options(other).software == ("mountpoint-s3", "rclone")


def test_keys_are_quoted_as_systemd_reads_them():
    mount = options(store_site()).mounts[PATH]
    assert texts.keys(mount, {"s3_access": "AK", "s3_secret": 'a"b\\c\n'}.__getitem__) == (
        'AWS_ACCESS_KEY_ID="AK"\nAWS_SECRET_ACCESS_KEY="a\\"b\\\\c"\n'
    )


def test_rclone_does_not_see_the_bundle_of_aws_s_tools(tmp_path):
    made = store_site({**BARE, "ca": "/etc/ca.pem"})
    plan = planned(made, worker(made))
    text = content(plan, texts.WRAPPER)
    real = tmp_path / "rclone"
    real.write_text('#!/bin/sh\necho "$1" "${AWS_CA_BUNDLE:-none}" "$AWS_REGION"\n')
    real.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", text.replace("/usr/bin/rclone", str(real)), "rclone", "a b"],
        env={"AWS_CA_BUNDLE": "/etc/ca.pem", "AWS_REGION": "r"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "a b none r\n"
    other = store_site(BARE)
    assert content(planned(other, worker(other)), texts.WRAPPER) is None


OLD = "rackwright-s3-data-my\\x2dold"


class Left(EmptyNode):
    """A node that still has the service and the keys of a mount."""

    def run_shell_command(self, command, **arguments):
        found = command.get_raw_value() if hasattr(command, "get_raw_value") else str(command)
        if texts.of_ours() not in found:
            return True, CommandOutput([])
        paths = (KEYS, UNIT_PATH, *texts.leftover_paths(OLD))
        return True, CommandOutput([OutputLine("stdout", path) for path in sorted(paths)])


def test_a_mount_that_is_declared_no_more_is_removed_with_its_keys():
    made = store_site()
    plan = planned(made, worker(made), connector=Left)
    found = [op for op in plan.operations if op.name.startswith(f"Remove {OLD}")]
    assert [(change.target, change.after) for op in found for change in op.changes] == [
        (f"{OLD}.service", "gone")
    ]
    assert f"Mount {PATH}" in [op.name for op in plan.operations]


@pytest.mark.parametrize("fails", [False, True])
def test_a_leftover_is_unmounted_before_its_files_go(tmp_path, fails):
    service, env = (tmp_path / name for name in (f"{OLD}.service", f"{OLD}.env"))
    for path in (service, env):
        path.write_text("x")
    tool = tmp_path / "systemctl"
    tool.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{tmp_path}/calls\n{"exit 1" if fails else ""}\n')
    tool.chmod(0o755)

    def run(script):
        for folder in (texts.FOLDER, "/etc/systemd/system"):
            script = script.replace(folder, str(tmp_path))
        return subprocess.run(
            ["sh", "-c", script],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert run(texts.of_ours()).stdout.split() == [str(env), str(service)]
    assert run(texts.present(OLD)).stdout == ""
    assert (run(texts.remove(OLD)).returncode != 0) is fails
    assert (service.exists(), env.exists()) == (fails, fails)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == [f"disable --now --quiet {OLD}.service", *([] if fails else ["daemon-reload"])]
    assert run(texts.present(OLD)).stdout == ("" if fails else "gone\n")


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_whole(os):
    made = store_site({"endpoints": {"site": ENDPOINT}}, os=os)
    plan = planned(made, worker(made))
    assert plan.error is None
    assert [op.name for op in plan.operations if op.role == "object_store"] == [
        "Install rclone",
        "Set the object store endpoints in login shells",
    ]
    assert content(plan, texts.PROFILE) == texts.profile(worker(made), options(made))
    assert MOUNTED not in claimed("object_store", CHECKS, worker(made))


# Checks

CURL = "curl -s -S -o /dev/null -w '%{http_code}' --noproxy '*' --connect-timeout 10 --max-time 15 https://s3.example.com"
TABLE = f"0 0 0:0 / / rw - ext4 /dev/vda rw\n0 0 0:0 / {PATH} ro - fuse.rclone site:sets ro\n"


def result(name, given, made=None, always=None):
    made = made or store_site()
    return judged("object_store", CHECKS, name, made, worker(made), FakeHost(given, always))


@pytest.mark.parametrize(
    ("reply", "status", "evidence"),
    [
        ("403", "PASS", "https://s3.example.com answers (403)"),
        ("503", "FAIL", "https://s3.example.com (site) answers with status 503"),
        (
            (60, "000", ""),
            "FAIL",
            "https://s3.example.com (site): its certificate is not trusted (curl exited 60)",
        ),
        (
            (28, "000", ""),
            "FAIL",
            "https://s3.example.com (site): it does not answer within 15 s (curl exited 28)",
        ),
        ((7, "000", ""), "FAIL", "https://s3.example.com (site): nothing listens there (curl exited 7)"),
        (
            (2, "", "curl: option unknown"),
            "UNKNOWN",
            "cannot query https://s3.example.com: curl: option unknown",
        ),
        ((127, "", "sh: curl: not found"), "UNKNOWN", None),
        ("rubbish", "UNKNOWN", None),
    ],
)
def test_an_endpoint(reply, status, evidence):
    one = result(ANSWERS, {CURL: reply})
    assert (one.status, evidence in (None, one.evidence)) == (status, True), one


def test_an_endpoint_is_asked_with_the_declared_ca():
    given = {CURL.replace("15 https", "15 --cacert /etc/ca.pem https"): "200"}
    assert result(ANSWERS, given, store_site({**BARE, "ca": "/etc/ca.pem"})).status == "PASS"


def mounted(table=TABLE, seen='{"reading": 3}', active="active"):
    words = (patient.PROGRAM, "15", verify._LOOK, PATH)
    return {
        **unit(UNIT, active=active),
        asked(MountTable().command((PATH,))): table,
        f"python3 -IS -c {' '.join(map(shlex.quote, words))}": seen,
    }


@pytest.mark.parametrize(
    ("changes", "status", "evidence"),
    [
        ({}, "PASS", f"{PATH} (3 entries)"),
        ({"active": "failed"}, "FAIL", f"{UNIT} is failed"),
        ({"table": TABLE.splitlines()[0] + "\n"}, "FAIL", f"{PATH} is not mounted"),
        ({"table": TABLE.replace("fuse.rclone", "ext4")}, "FAIL", f"{PATH} is ext4 from site:sets, not a bucket"),
        ({"table": TABLE.replace("ro - ", "rw - ").replace("sets ro", "sets rw")}, "FAIL", f"{PATH} is writable, not read-only"),
        ({"seen": '{"error": "ENOTCONN", "text": "x"}'}, "FAIL", f"{PATH} cannot be read: ENOTCONN (x)"),
        ({"seen": '{"hangs": true}'}, "UNKNOWN", f"{PATH} does not answer within 15 s"),
        ({"table": ""}, "UNKNOWN", None),
    ],
)  # fmt: skip
def test_a_mounted_bucket(changes, status, evidence):
    one = result(MOUNTED, mounted(**changes))
    assert (one.status, evidence in (None, one.evidence)) == (status, True), one


def test_tools_and_settings():
    made = store_site(BARE)
    family = worker(made).family
    rclone = names(family, "rclone").packages
    there = {
        **installed(family, rclone),
        **files(texts.files(worker(made), options(made))),
        **answer(texts.of_ours(), ""),
    }
    assert result(FILES, there, made).status == "PASS"
    assert result(FILES, there | file(texts.WRAPPER, "#!/bin/sh\n# the site's\n"), made).status == "PASS"
    ours = result(FILES, there | file(texts.WRAPPER, f"{texts.MARKER}\n"), made)
    assert (ours.status, ours.evidence) == ("FAIL", f"{texts.WRAPPER} exists but is not declared")
    service, env = texts.leftover_paths(OLD)
    left = {**answer(texts.of_ours(), f"{env}\n{service}\n"), **file(service, "x"), **file(env, "x")}
    found = result(FILES, there | left, made)
    assert (found.status, found.evidence) == (
        "FAIL",
        f"{service} exists but is not declared; {env} exists but is not declared",
    )
    assert result(FILES, there | file(texts.PROFILE, "other\n"), made).status == "FAIL"
    assert (
        result(FILES, there | installed(family, rclone, missing=("rclone",)), made).evidence
        == "not installed: rclone"
    )
    for name in (FILES, ANSWERS):
        assert result(name, {}, made).status == "UNKNOWN"
    for name in (FILES, ANSWERS, MOUNTED):
        for rubbish in ("", "command not ready\n"):
            assert result(name, {}, always=rubbish).status not in ("PASS", "WARN")
