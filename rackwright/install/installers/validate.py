"""Validates answers before they are served. What nothing on this host can check is reported as UNKNOWN."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from rackwright.boundary import printable
from rackwright.errors import InstallError
from rackwright.install.installers import autoinstall_schema, kickstart
from rackwright.install.installers.preseed_questions import TYPES
from rackwright.install.installers.request import Answers, Request
from rackwright.model.install import Installer
from rackwright.status import Status

_TIMEOUT = 60
_DISKS = re.compile(r"--(only-use|drives|ondisk|boot-drive)=(\S+)")
_SECTION = re.compile(r"^%(?:pre|post|onerror)[^\n]*\n(.*?)^%end$", re.DOTALL | re.MULTILINE)
_INCLUDE = re.compile(r"^%include .*\n", re.MULTILINE)
_STABLE = re.compile(r"disk/by-(id|path)/[A-Za-z0-9._:+@#=-]+")
# The host's debconf database is locked while apt runs and while another node's answers are validated (seen 2026-11-27).
_DEBCONF = """\
Config: configdb
Templates: templatedb

Name: configdb
Driver: File
Filename: {folder}/config.dat

Name: templatedb
Driver: File
Filename: {folder}/templates.dat
"""
KSVALIDATOR_HINT = "pip install 'rackwright[install]'"
DEBCONF_HINT = "apt-get install debconf"


@dataclass(frozen=True)
class Finding:
    """Result of one validator for one file."""

    file: str
    status: Status
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


def require_valid(request: Request, answers: Answers) -> tuple[Finding, ...]:
    """Files that could not be checked; InstallError if a validator rejects one."""
    found = validate(request, answers)
    wrong = [one for one in found if one.status is Status.FAIL]
    if wrong:
        raise InstallError(
            f"The answers for {request.node.name} are invalid, so nothing was served: "
            + "; ".join(str(one) for one in wrong)
        )
    return tuple(one for one in found if one.status is Status.UNKNOWN)


def validate(request: Request, answers: Answers) -> tuple[Finding, ...]:
    """Every finding, including PASS."""
    installer = request.install.installer
    if installer is Installer.AUTOINSTALL:
        text = answers.files["user-data"]
        return (*of_autoinstall(text), *of_scripts("user-data", _commands(text)))
    if installer is Installer.KICKSTART:
        text, storage = answers.files["ks.cfg"], kickstart.sample(kickstart.storage(request))
        sections = _SECTION.findall(text)
        major = request.node.os.id.rpartition("-")[2]
        return (*of_kickstart(text, storage, f"RHEL{major}"), *of_scripts("ks.cfg", sections))
    scripts = [answers.files[name] for name in ("guard.sh", "finish.sh")]
    return (*of_preseed(answers.files["preseed.cfg"]), *of_scripts("guard.sh, finish.sh", scripts))


def of_autoinstall(text: str) -> tuple[Finding, ...]:
    """Checks against our models of subiquity's documentation."""
    return _judged("user-data", autoinstall_schema.mistakes(text), "has the documented keys and types")


def of_kickstart(text: str, storage: str, version: str) -> tuple[Finding, ...]:
    """Checks with pykickstart's ksvalidator, run as a program, with a sample of the section that the node writes."""
    commands = _INCLUDE.sub(lambda _: storage, _SECTION.sub("", text))
    unstable = [
        f"{option} names {disk}, which may be another disk after a reboot"
        for option, disks in _DISKS.findall(commands)
        for disk in disks.split(",")
        if not _STABLE.fullmatch(disk)
    ]
    wrong = [*unstable, *_dangling(commands)]
    found = _judged("ks.cfg", wrong, "uses only stable disk names, and refers only to what it defines")
    program = shutil.which("ksvalidator", path=str(Path(sys.executable).parent)) or shutil.which(
        "ksvalidator"
    )
    if program is None:
        return (
            *found,
            Finding("ks.cfg", Status.UNKNOWN, f"not validated: ksvalidator is missing; {KSVALIDATOR_HINT}"),
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "ks.cfg")
        file.write_text(_INCLUDE.sub(lambda _: storage, text))
        # It leaves the file that it has preprocessed in TMPDIR.
        argv = ["env", f"TMPDIR={folder}", sys.executable, program, "-v", version, str(file)]
        return (*found, _run("ks.cfg", argv, f"ksvalidator -v {version}"))


def of_preseed(text: str) -> tuple[Finding, ...]:
    """Checks with debconf-set-selections, which knows only the line format, and against the list of our questions."""
    found = _judged("preseed.cfg", _questions(text), "answers known questions with their types")
    program = shutil.which("debconf-set-selections")
    if program is None:
        message = f"not validated: debconf-set-selections is missing; {DEBCONF_HINT}"
        return (*found, Finding("preseed.cfg", Status.UNKNOWN, message))
    with tempfile.TemporaryDirectory() as folder:
        file, settings = Path(folder, "preseed.cfg"), Path(folder, "debconf.conf")
        file.write_text(text)
        settings.write_text(_DEBCONF.format(folder=folder))
        argv = ["env", f"DEBCONF_SYSTEMRC={settings}", program, "--checkonly", str(file)]
        return (*found, _run("preseed.cfg", argv, "debconf-set-selections --checkonly"))


def of_scripts(file: str, scripts: Sequence[str]) -> tuple[Finding, ...]:
    """Whether a shell can parse each script."""
    wrong = []
    for script in scripts:
        result = subprocess.run(
            ["/bin/sh", "-n"], input=script, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
        if result.returncode != 0:
            wrong.append(printable(result.stderr.strip(), 200))
    return _judged(file, wrong, "scripts can be parsed")


def _dangling(commands: str) -> Iterator[str]:
    """References between storage commands, which ksvalidator does not follow."""
    defined: set[str] = set()
    for line in commands.splitlines():
        words = [one for one in line.split() if not one.startswith("--")]
        if not words or words[0] not in ("part", "raid", "volgroup", "logvol"):
            continue
        groups = re.findall(r"--vgname=(\S+)", line)
        yield from (
            f"{words[0]} refers to {one}, which is not defined before it"
            for one in (*words[2:], *groups)
            if one not in defined
        )
        defined.update(words[1:2])


def _questions(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        _, question, kind, value = [*line.split(" ", 3), "", "", ""][:4]
        if question not in TYPES:
            yield f"{question} is not a known question"
        elif kind != TYPES[question]:
            yield f"{question} has the type {TYPES[question]}, not {kind}"
        elif kind == "boolean" and value not in ("true", "false"):
            yield f"{question} is {value}, but must be true or false"
        if re.search(r"/dev/(sd|vd|xvd|nvme|disk)", value):
            yield f"{question} names a disk, which may be another one after a reboot"


def _commands(text: str) -> list[str]:
    try:
        document = yaml.safe_load(text)["autoinstall"]
        return [one for key in ("early", "late", "error") for one in document[f"{key}-commands"]]
    except (yaml.YAMLError, KeyError, TypeError):
        return []  # `of_autoinstall` reports it


def _judged(file: str, wrong: Iterator[str] | Sequence[str], passed: str) -> tuple[Finding, ...]:
    found = tuple(Finding(file, Status.FAIL, one) for one in wrong)
    return found or (Finding(file, Status.PASS, passed),)


def _run(file: str, argv: Sequence[str], name: str) -> Finding:
    try:
        result = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(file, Status.UNKNOWN, f"{name} did not run: {printable(str(error), 200)}")
    if result.returncode == 0:
        return Finding(file, Status.PASS, f"{name} accepts it")
    lines = [
        one
        for one in (result.stdout + result.stderr).splitlines()
        if one.strip() and "Checking kick" not in one
    ]
    return Finding(file, Status.FAIL, f"{name} refuses it: {printable(' '.join(lines), 400)}")
