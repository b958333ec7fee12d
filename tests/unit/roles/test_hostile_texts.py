"""A text of a cluster file that holds what is special in a file on a node is refused, or ends in none.

Each text of an example, and of a file that has what it lacks, gets a special character and a word after it. The
cluster file names what it refuses; that is put right again until the rest is accepted. Then the word may be in no file
that a node gets, except in JSON, where it is the whole text, and where ALLOWED explains why it is harmless.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.clusterfile.load import load_cluster
from rackwright.engine.render import render_node
from rackwright.errors import ClusterFileError
from rackwright.model.cluster import Cluster
from tests.examples import cluster_files
from tests.unit.clusterfile.test_mistakes import DUMPER

WORD = "Injected"
SPECIAL = (
    " ",
    '"',
    "'",
    "#",
    "=",
    ";",
    "%",
    "\\",
    "$(",
    "`",
    ",",
    "|",
    "&",
    ">",
    "{",
    "]",
    ":",
    "!",
    "*",
    "/../",
)
ALLOWED = {
    ("/etc/ssh/authorized_keys.d/*", SPECIAL): "the comment of a key, at the end of its line",
    ("/etc/apt/sources.list.d/*", ("%", ":", "/../")): "part of a URL",
    ("/etc/pip.conf", ("%", ":", "/../")): "part of a URL",
    ("/etc/apt/apt.conf.d/*", ("%", ":", "/../")): "part of a URL, in quotes",
    ("/etc/slurm/slurm*.conf", ("%",)): "Slurm replaces `%h` and the like in paths",
    ("/etc/slurm/job_container.conf", ("%",)): "Slurm replaces `%h` and the like in paths",
    ("/etc/slurm/slurm.conf", ("=", ":", "*")): "the value of one of SchedulerParameters",
    ("/usr/libexec/rackwright/slurmctld-standby", ("%",)): "part of a path; a shell leaves it as it is",
    ("/etc/sysctl.d/*", (" ", ":", "/../")): "the value of one kernel setting, to the end of its line",
    ("/etc/chrony/chrony.conf", (":",)): "part of an IPv6 address",
    ("/etc/enroot/enroot.conf", (" ",)): "options of mksquashfs, words of letters and digits",
    ("/etc/rackwright/firewall.nft", (" ", ",", ":", "/../")): "the comment of a rule, in quotes",
    ("/etc/sssd/sssd.conf", (" ",)): "part of a distinguished name, to the end of its line",
    ("/etc/containerd/config.toml", (":", "/../")): "part of an image's name, in quotes",
    (
        "/etc/systemd/system/*exporter.service.d/90-rackwright.conf",
        SPECIAL,
    ): "a quoted word of a command line",
    (
        "/etc/systemd/system/prometheus*.service.d/90-rackwright.conf",
        SPECIAL,
    ): "a quoted word of a command line",
    ("/etc/prometheus/alertmanager.yml", SPECIAL): "quoted by YAML's writer and by Alertmanager's matchers",
    ("/etc/rackwright-exporters/alertmanager/notifications.tmpl", ("%", ":", "/../")): "part of a URL",
    ("/etc/systemd/system/*.mount", (":", "/../")): "the value of one mount option",
}
"""Pattern of files and the specials that may be there, to the reason."""

MORE = Path(__file__).with_name("hostile_texts.yaml")
"""Options with texts that the example lacks."""
FILESYSTEMS = Path(__file__).with_name("hostile_texts_filesystems.yaml")
METRICS = Path(__file__).with_name("hostile_texts_metrics.yaml")
FILES = [*cluster_files("example-dgx-h100.yaml"), MORE, FILESYSTEMS, METRICS]
ROUNDS = 8


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the texts are."""
    if isinstance(value, str):
        yield path
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from leaves(inner, (*path, key))


def spoilt(data: Any, places: set[tuple[Any, ...]], addition: str, path: tuple[Any, ...] = ()) -> Any:
    """The data with an addition to each of these texts."""
    if isinstance(data, dict):
        return {key: spoilt(inner, places, addition, (*path, key)) for key, inner in data.items()}
    if isinstance(data, list):
        return [spoilt(inner, places, addition, (*path, index)) for index, inner in enumerate(data)]
    return data + addition if path in places else data


def as_path(text: str) -> tuple[Any, ...]:
    """`roles.slurm.partitions["a b"].nodes[0]` of a message."""
    parts: list[Any] = []
    rest = text
    while rest:
        if rest.startswith('["'):
            part, _, rest = rest[2:].partition('"]')
            parts.append(part)
        elif rest.startswith("["):
            number, _, rest = rest[1:].partition("]")
            parts.append(int(number))
        else:
            rest = rest.removeprefix(".")
            end = min((at for at in (rest.find("."), rest.find("[")) if at >= 0), default=len(rest))
            parts.append(rest[:end])
            rest = rest[end:]
    return tuple(parts)


def accepted(file: Path, data: Any, addition: str) -> Cluster:
    """The cluster with the addition in each text that takes it."""
    places = set(leaves(data))
    for _ in range(ROUNDS):
        file.write_text(yaml.dump(spoilt(data, places, addition), Dumper=DUMPER, sort_keys=False))
        try:
            return load_cluster(file)
        except ClusterFileError as error:
            wrong = {as_path(problem.path) for problem in error.problems}
        if not places:
            raise AssertionError(f"refused without any addition: {wrong}")
        refused = below(places, wrong)
        while not refused:  # a text elsewhere in the section made it wrong
            wrong = {path[:-1] for path in wrong}
            refused = below(places, wrong)
        places -= refused
    raise AssertionError(f"still refused after {ROUNDS} rounds: {wrong}")


def below(places: set[tuple[Any, ...]], paths: set[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    return {place for place in places for path in paths if place[: len(path)] == path}


def texts_of_json(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts_of_json(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of_json(inner)


def is_harmless(path: str, text: str, addition: str, special: str) -> bool:
    """Whether the word is not in a file, or whole in a text of its JSON or YAML."""
    if WORD not in text or any(fnmatch(path, files) and special in specials for files, specials in ALLOWED):
        return True
    try:
        data = yaml.safe_load(text) if path.endswith(".yml") else json.loads(text)
    except (ValueError, yaml.YAMLError):
        return False
    found = [one for one in texts_of_json(data) if WORD in one]
    return bool(found) and all(addition in one for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_special_character_reaches_a_file(tmp_path, file):
    for beside in file.parent.glob(f"{file.stem}.*"):
        shutil.copy(beside, tmp_path)
    data = json.loads(json.dumps(yaml.safe_load(file.read_text()), default=str))
    there = tmp_path / file.name
    found: dict[tuple[str, str], str] = {}
    for special in SPECIAL:
        addition = f"{special}{WORD}"
        cluster = accepted(there, data, addition)
        kinds = {(node.roles, node.sku.name): node for node in cluster.nodes}
        for node in kinds.values():
            files = render_node(cluster, node)
            assert len(files) > 10
            for path, text in files.items():
                if not is_harmless(path, text, addition, special):
                    line = next(line for line in text.splitlines() if WORD in line)
                    found.setdefault((path, special), line)
    assert found == {}
