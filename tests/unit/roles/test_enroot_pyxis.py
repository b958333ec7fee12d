"""The enroot_pyxis role: options, what is downloaded and built, files, and its checks."""

from __future__ import annotations

import pytest

from rackwright.osfamily.known import os_release
from rackwright.roles.enroot_pyxis import texts
from rackwright.roles.enroot_pyxis.options import EnrootPyxisOptions
from rackwright.roles.enroot_pyxis.verify import CHECKS
from rackwright.roles.slurm.options import SlurmOptions
from tests.unit.roles.container_site import changed, never_passes, runtimes, sentences, user_folder_answers
from tests.unit.roles.fake_facts import answer, file, files, link
from tests.unit.roles.fake_host import FakeHost, claimed, commands, errors_in, judged, planned
from tests.unit.roles.sites import expected, head, worker

ENROOT, CAPS, PYXIS = "enroot_4.1.2-1_amd64.deb", "enroot+caps_4.1.2-1_amd64.deb", "pyxis-0.24.0.tar.gz"
SUMS = {ENROOT: "a" * 64, CAPS: "b" * 64, PYXIS: "c" * 64}
VERSIONS = {"enroot_version": "4.1.2", "pyxis_version": "0.24.0"}
OPTIONS = EnrootPyxisOptions(**VERSIONS, sha256=SUMS, scratch="/scratch")


def clusters(options, **changes):
    return runtimes(slurm=SlurmOptions(), enroot_pyxis=options, **changes)


SITE = clusters(OPTIONS)
GPU = worker(SITE)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {**VERSIONS, "sha256": {}, "enroot_version": "4"},
            "String should match pattern '^[0-9]+\\.[0-9]+\\.[0-9]+$'",
        ),
        (
            {**VERSIONS, "sha256": {}, "hooks": ["98-nvidia.sh"]},
            "Input should be '50-slurm-pmi.sh', '50-slurm-pytorch.sh', '50-mig-config.sh' or '50-sharp.sh'",
        ),
        (VERSIONS, "Field required"),
        (
            {**VERSIONS, "sha256": {}, "squash_options": "-comp; rm"},
            "String should match pattern '^[A-Za-z0-9 -]+$'",
        ),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(EnrootPyxisOptions, given) == [sentence]


def test_problems():
    assert sentences(SITE, "enroot_pyxis") == []
    assert sentences(runtimes(enroot_pyxis=OPTIONS), "enroot_pyxis") == [
        ("", "head1 has no Slurm, and pyxis is its plugin.", "add `roles.slurm`")
    ]
    partly = OPTIONS.model_copy(update={"sha256": {ENROOT: "a" * 64}})
    assert sentences(clusters(partly), "enroot_pyxis") == [
        ("sha256", f"head1 needs {CAPS}, whose SHA-256 is not declared.", None)
    ]
    packaged = OPTIONS.model_copy(update={"pyxis_source": "package"})
    assert sentences(clusters(packaged), "enroot_pyxis") == [
        (
            "pyxis_source",
            "NVIDIA releases no package of pyxis, and the cluster has no `mirrors.files` to take the site's from.",
            "set `pyxis_source: build`, or lay the package on a mirror",
        ),
        (
            "sha256",
            "head1 needs nvslurm-plugin-pyxis_0.24.0-1_amd64.deb, whose SHA-256 is not declared.",
            None,
        ),
    ]


def test_files():
    declared = texts.declared(OPTIONS)
    assert declared[texts.ENROOT_CONF] == expected("enroot_pyxis/enroot.conf")
    assert declared[texts.TMPFILES] == expected("enroot_pyxis/tmpfiles.conf")
    assert declared[texts.PYXIS_CONF] == expected("enroot_pyxis/pyxis.conf")
    other = OPTIONS.model_copy(
        update={"scratch": None, "pyxis_source": "package", "container_scope": "job", "remap_root": True}
    )
    assert texts.declared(other)[texts.PYXIS_CONF] == expected("enroot_pyxis/pyxis-packaged.conf")
    assert texts.declared(other)[texts.ENROOT_CONF] == expected("enroot_pyxis/enroot-plain.conf")
    assert texts.build(OPTIONS) == expected("enroot_pyxis/build.sh")


def test_slurm_includes_the_plugin():
    plan = planned(SITE, GPU)
    (plugstack,) = (
        change.content
        for operation in plan.operations
        for change in operation.changes
        if change.target == "/etc/slurm/plugstack.conf"
    )
    assert "include /etc/slurm/plugstack.conf.d/*.conf" in plugstack
    assert texts.PYXIS_CONF.startswith("/etc/slurm/plugstack.conf.d/")
    assert texts.PYXIS_CONF.endswith(".conf")


def test_what_debian_gets():
    plan = planned(SITE, GPU)
    wanted = ["curl", "enroot", "enroot+caps", "gcc", "libc6-dev", "libslurm-dev", "make", "binutils"]
    assert changed(plan, "enroot_pyxis", "package") == wanted
    (fetch,) = commands(plan, f"Fetch {CAPS}")
    assert f"https://github.com/NVIDIA/enroot/releases/download/v4.1.2/{CAPS}" in fetch
    assert f'[ "$found" = {"b" * 64} ]' in fetch
    (fetch,) = commands(plan, f"Fetch {PYXIS}")
    assert "https://github.com/NVIDIA/pyxis/archive/refs/tags/v0.24.0.tar.gz" in fetch
    assert commands(plan, "Build pyxis") == (texts.build(OPTIONS),)
    order = [operation.name for operation in plan.operations if operation.changes]
    assert order.index("Build pyxis") < order.index(f"Write {texts.PYXIS_CONF}")


def test_what_el_gets():
    rpms = ("enroot-4.1.2-1.el8.x86_64.rpm", "nvslurm-plugin-pyxis-0.24.0-1.el8.x86_64.rpm")
    options = OPTIONS.model_copy(
        update={"pyxis_source": "package", "enroot_caps": False, "sha256": dict.fromkeys(rpms, "d" * 64)}
    )
    made = clusters(options, os=os_release("rocky-9"), files="http://m/files")
    assert sentences(made, "enroot_pyxis") == []
    plan = planned(made, worker(made))
    assert changed(plan, "enroot_pyxis", "package") == ["enroot", "nvslurm-plugin-pyxis"]
    assert f"http://m/files/{rpms[1]}" in commands(plan, f"Fetch {rpms[1]}")[0]
    assert f"install /var/cache/rackwright/{rpms[1]}" in commands(plan, "Install nvslurm-plugin-pyxis")[0]


VERSION, HELP = "enroot version", "srun --help"
RELEASE, KNOWS, BUILT = (
    "enroot is the declared release",
    "srun accepts --container-image",
    "pyxis was built for the installed Slurm",
)
ON = {
    **link("/etc/enroot/hooks.d/50-slurm-pmi.sh", "/usr/share/enroot/hooks.d/50-slurm-pmi.sh"),
    **link("/etc/enroot/hooks.d/50-slurm-pytorch.sh", "/usr/share/enroot/hooks.d/50-slurm-pytorch.sh"),
}
FILES = files(texts.declared(OPTIONS))


@pytest.mark.parametrize(
    ("found", "status", "evidence"),
    [
        (
            (),
            "PASS",
            "0 folders in /run/enroot, /scratch/enroot/cache, /scratch/enroot/data, /scratch/enroot/tmp",
        ),
        (
            ("3001 700 d user-3000",),
            "FAIL",
            "/run/enroot/user-3000 has mode 700 and belongs to uid 3001, not 700 and uid 3000",
        ),
        (("rubbish",), "UNKNOWN", "the folders in /run/enroot cannot be read: 'rubbish'"),
    ],
)
def test_users_folders(found, status, evidence):
    host = FakeHost(user_folder_answers(GPU, texts.folders(OPTIONS), *found))
    result = judged("enroot_pyxis", CHECKS, "users' enroot folders are private", SITE, GPU, host)
    assert (result.status, result.evidence) == (status, evidence)


def test_no_check_passes_without_knowing():
    never_passes("enroot_pyxis", CHECKS, SITE, GPU)


def test_heads_get_the_flags_too():
    assert KNOWS in claimed("enroot_pyxis", CHECKS, head(SITE))


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (RELEASE, {VERSION: "4.1.2\n"}, "PASS", "enroot 4.1.2"),
        (RELEASE, {VERSION: "3.5.0\n"}, "FAIL", "enroot 3.5.0 is installed, not 4.1.2"),
        (RELEASE, {VERSION: "v?\n"}, "UNKNOWN", "`enroot version` printed 'v?'"),
        ("the files of enroot and pyxis are as declared", FILES, "PASS", ", ".join(texts.declared(OPTIONS))),
        (
            "the files of enroot and pyxis are as declared",
            {**FILES, **file(texts.PYXIS_CONF, None)},
            "FAIL",
            f"{texts.PYXIS_CONF} is missing",
        ),
        (
            "enroot's declared hooks are enabled",
            ON,
            "PASS",
            "50-slurm-pmi.sh, 50-slurm-pytorch.sh turned on",
        ),
        (
            "enroot's declared hooks are enabled",
            {**ON, **file("/etc/enroot/hooks.d/50-slurm-pmi.sh", None)},
            "FAIL",
            "/etc/enroot/hooks.d/50-slurm-pmi.sh is missing",
        ),
        (
            "enroot's declared hooks are enabled",
            {**ON, **link("/etc/enroot/hooks.d/50-slurm-pytorch.sh", "/tmp/mine.sh")},
            "FAIL",
            (
                "/etc/enroot/hooks.d/50-slurm-pytorch.sh is a link to /tmp/mine.sh, not to "
                "/usr/share/enroot/hooks.d/50-slurm-pytorch.sh"
            ),
        ),
        (
            "enroot's declared hooks are enabled",
            {**ON, **file("/etc/enroot/hooks.d/50-slurm-pmi.sh", "#!/bin/sh\n")},
            "FAIL",
            "/etc/enroot/hooks.d/50-slurm-pmi.sh is not a link but a file",
        ),
        (
            BUILT,
            answer(texts.built_read(OPTIONS), "current\n"),
            "PASS",
            "pyxis 0.24.0, built for the installed Slurm",
        ),
        (
            BUILT,
            {**answer(texts.built_read(OPTIONS), ""), f"cat {texts.MARK}": "0.24.0 slurm-wlm 22.05.8\n"},
            "FAIL",
            "pyxis was built as 0.24.0 slurm-wlm 22.05.8, which is not the declared release with the installed Slurm",
        ),
        (
            KNOWS,
            {HELP: "--partition\n --container-image=[USER@]\n"},
            "PASS",
            "srun accepts --container-image",
        ),
        (KNOWS, {HELP: "Usage: srun --partition\n"}, "FAIL", "srun does not know --container-image"),
        (
            KNOWS,
            {
                HELP: (
                    1,
                    "",
                    "srun: error: plugin_load_from_file: spank_pyxis.so: Incompatible Slurm plugin\n",
                )
            },
            "FAIL",
            "srun cannot load pyxis: srun: error: plugin_load_from_file: spank_pyxis.so: Incompatible Slurm plugin",
        ),
        (KNOWS, {HELP: "?\n"}, "UNKNOWN", "`srun --help` did not print its options"),
    ],
)
def test_check(name, answers, status, evidence):
    found = judged("enroot_pyxis", CHECKS, name, SITE, GPU, FakeHost(answers))
    assert (found.status, found.evidence) == (status, evidence)
