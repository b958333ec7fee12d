"""Cache of earlier runs: the questions each node was asked, and the digest of its answers when in sync.

One JSON file per host class below the cluster's state folder. Questions are hints: a stale one costs
a little time, never correctness. A digest is valid only with the key it was stored under, which
covers everything an evaluation depends on besides the node itself: the code, the templates, the
cluster file, the secrets and the known host keys.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rackwright
from rackwright.atomic_write import write_atomically
from rackwright.factcache.answers import Asked, key_of, pack
from rackwright.model.cluster import Cluster
from rackwright.model.options import Frozen
from rackwright.secrets.store import store_path
from rackwright.shipped import deploy_of
from rackwright.site_folder import site_folder

_PARTS = ("questions", "askers", "nodes")
FULL_EVALUATION_SECONDS = 86400
"""A digest expires this long after the last full evaluation."""


def version_key(cluster: Cluster, deploy: Path | None = None) -> str:
    """Digest of everything but the nodes that an evaluation with this deploy (None: the site's) depends on."""
    digest = hashlib.sha256()
    package = Path(rackwright.__file__).resolve().parent
    rooms = [package, *(package / room for room in ("deploys", "roles", "templates"))]
    files = {path for room in rooms for path in room.resolve().rglob("*") if _is_source(path)}
    files.update(site_folder(cluster.path).sources())
    inputs = [deploy or deploy_of(cluster.path), cluster.path, cluster.ssh.known_hosts, store_path(cluster)]
    inputs.append(cluster.lock_path)
    if cluster.ssh.key is not None:
        inputs.append(cluster.ssh.key)  # a role may compare the keys of a node with it
    for path in [*sorted(files), *inputs, *_named_files(cluster)]:
        digest.update(f"{path}\0".encode())
        if path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _named_files(cluster: Cluster) -> list[Path]:
    """Files beside the cluster file that options name: certificates, a mirror's list, manifests."""
    options = {id(given): given for node in cluster.nodes for given in node.options.values()}
    paths = {path for given in options.values() for path in _paths(given)}
    return sorted(cluster.path.parent / path for path in paths)


def _paths(value: object) -> Iterator[Path]:
    """Every path in options, however deep."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, Frozen):
        for name in type(value).model_fields:
            yield from _paths(getattr(value, name))
    elif isinstance(value, Mapping):
        yield from (path for item in value.values() for path in _paths(item))
    elif isinstance(value, tuple | frozenset):
        yield from (path for item in value for path in _paths(item))


def _is_source(path: Path) -> bool:
    return path.suffix in (".py", ".j2", ".yaml") and path.is_file()


def _is_whole(data: dict[str, Any]) -> bool:
    """Whether every entry can be used; KeyError, TypeError, ValueError or AttributeError where one is odd."""
    numbers = set(data["questions"].values())
    return (
        all(isinstance(number, int) for number in numbers)
        and all(isinstance(json.loads(name), dict) for name in data["questions"])
        and all(int(number) in numbers and isinstance(name, str) for number, name in data["askers"].items())
        and all(_is_usable(entry, numbers) for entry in data["nodes"].values())
    )


def _is_usable(entry: dict[str, Any], numbers: set[int]) -> bool:
    digest, key = entry["digest"], entry["key"]
    texts = isinstance(key, str) and (digest is None or isinstance(digest, str))
    return texts and isinstance(entry["full"], int | float) and numbers.issuperset(entry["asks"])


@dataclass
class CachedNode:
    """The entry of one node."""

    questions: list[Asked] = field(default_factory=list)
    digest: str | None = None
    packed: bytes | None = None
    """The questions as they are sent."""


class ClassCache:
    """The cache of one host class."""

    def __init__(self, folder: Path, host_class: str, key: str) -> None:
        with contextlib.suppress(OSError):  # `save` reports it
            folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{hashlib.sha256(host_class.encode()).hexdigest()[:16]}.json"
        self._key = key
        self._data = self._read()
        self._parsed = {number: json.loads(name) for name, number in self._data["questions"].items()}
        self._lists: dict[tuple[int, ...], tuple[list[Asked], bytes]] = {}
        """Both are shared by all nodes: a thousand of them are asked the same."""

    def get(self, node: str) -> CachedNode:
        """The entry of a node, its digest only while valid; questions of another node of the class if it has none."""
        entry = self._data["nodes"].get(node)
        if entry is None:
            any_entry = next(iter(self._data["nodes"].values()), None)
            return CachedNode() if any_entry is None else self._cached(any_entry, None)
        # a time in the future is of a clock that was wrong: how old the digest is, is not known
        age = time.time() - entry["full"]
        fresh = entry["key"] == self._key and 0 <= age < FULL_EVALUATION_SECONDS
        return self._cached(entry, entry["digest"] if fresh else None)

    def ignore_digests(self) -> None:
        """Have every node evaluated in full (`--full`)."""
        for entry in self._data["nodes"].values():
            entry["digest"] = None

    def askers(self, node: str) -> list[str]:
        """The operation behind each of a node's questions, `role | operation`; empty where not known."""
        askers = self._data["askers"]
        return [askers.get(str(number), "") for number in self._data["nodes"][node]["asks"]]

    def store(
        self, node: str, questions: list[Asked], digest: str | None, askers: Sequence[str] = ()
    ) -> None:
        """Store what a full evaluation asked and for which operations; a digest if the node was in sync."""
        numbers = []
        for question in questions:
            name = key_of(question)
            if name not in self._data["questions"]:
                self._data["questions"][name] = len(self._data["questions"])
                self._parsed[self._data["questions"][name]] = question
            numbers.append(self._data["questions"][name])
        named = zip(numbers, askers, strict=False)  # the operation is not always known
        self._data["askers"].update((str(number), name) for number, name in named if name)
        entry = {"asks": numbers, "digest": digest, "key": self._key, "full": time.time()}
        self._data["nodes"][node] = entry

    def save(self) -> None:
        """Write it back, keeping what other runs have stored of other nodes.

        Without it the next run asks the nodes more than it had to, and finds the same: a full disk is a warning.
        """
        try:
            self._save()
        except OSError as error:
            logging.getLogger(__name__).warning("%s cannot be written: %s", self._path, error.strerror)

    def _save(self) -> None:
        mine = self._data
        with self._locked():
            self._data = self._read()
            numbers = {number: json.loads(name) for name, number in mine["questions"].items()}
            for node, entry in mine["nodes"].items():
                known = self._data["nodes"].get(node)
                if known is None or known["full"] < entry["full"] or known["full"] > time.time():
                    questions = [numbers[number] for number in entry["asks"]]
                    askers = [mine["askers"].get(str(number), "") for number in entry["asks"]]
                    self.store(node, questions, entry["digest"], askers)
                    self._data["nodes"][node].update(key=entry["key"], full=entry["full"])
            self._drop_unasked()
            write_atomically(self._path, json.dumps(self._data), mode=0o644, durable=False)

    def _cached(self, entry: dict[str, Any], digest: str | None) -> CachedNode:
        asks = tuple(entry["asks"])
        if asks not in self._lists:
            questions = [self._parsed[number] for number in asks]
            self._lists[asks] = questions, pack(questions)
        questions, packed = self._lists[asks]
        return CachedNode(questions, digest, packed)

    def _drop_unasked(self) -> None:
        asked = {number for entry in self._data["nodes"].values() for number in entry["asks"]}
        self._data["questions"] = {
            name: number for name, number in self._data["questions"].items() if number in asked
        }
        renumbered = {number: place for place, number in enumerate(self._data["questions"].values())}
        self._data["questions"] = {
            name: renumbered[number] for name, number in self._data["questions"].items()
        }
        self._data["askers"] = {
            str(renumbered[int(number)]): name
            for number, name in self._data["askers"].items()
            if int(number) in renumbered
        }
        for entry in self._data["nodes"].values():
            entry["asks"] = [renumbered[number] for number in entry["asks"]]

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self._path.read_text())
            if _is_whole(data):
                return {part: data[part] for part in _PARTS}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass  # missing or damaged: the next evaluation fills it
        return {part: {} for part in _PARTS}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._path.with_suffix(".lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


class FactCache:
    """The caches of several host classes, by node."""

    def __init__(self, folder: Path, classes: Mapping[str, str], key: str) -> None:
        """`classes`: node -> host class."""
        self._by_class = {name: ClassCache(folder, name, key) for name in dict.fromkeys(classes.values())}
        self._of = {node: self._by_class[name] for node, name in classes.items()}

    def get(self, node: str) -> CachedNode:
        """See ClassCache."""
        return self._of[node].get(node)

    def ignore_digests(self) -> None:
        """See ClassCache."""
        for cache in self._by_class.values():
            cache.ignore_digests()

    def store(
        self, node: str, questions: list[Asked], digest: str | None, askers: Sequence[str] = ()
    ) -> None:
        """See ClassCache."""
        self._of[node].store(node, questions, digest, askers)

    def save(self) -> None:
        """See ClassCache."""
        for cache in self._by_class.values():
            cache.save()
