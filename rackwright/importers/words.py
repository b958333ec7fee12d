"""Roles, operating systems and SKUs by the names that other tools give them; None where a name is not certain."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from rackwright.catalog.read import catalogue
from rackwright.documents.nearest import short
from rackwright.errors import ExitCode, RackwrightError
from rackwright.model.sku import Sku
from rackwright.model.types import NodeRole
from rackwright.osfamily.known import RELEASES

IGNORE = "ignore"
_ROLES: Mapping[str, str] = {
    # DeepOps: slurm-master, slurm-node, slurm-login, slurm-nfs, kube-master, kube-node (config.example/inventory)
    # Omnia: slurm_control_node, slurm_node, login_node, kube_control_plane, kube_node; manager, compute before 1.6
    # Kubespray: kube_control_plane, kube_node (inventory/sample)
    "head": "head heads head-node headnode master masters controller controllers control-plane management manager mgmt "
    "management-node slurm-master slurm-masters slurm-control-node slurm-control slurm-controller slurm-controllers "
    "slurmctld slurmservers kube-master kube-control-plane",
    "worker": "worker workers worker-node compute computes compute-node compute-nodes gpu gpus gpu-node gpu-nodes gpu-server "
    "slurm-node slurm-nodes slurm-worker slurm-workers slurm-compute slurmd slurmexechosts kube-node dgx hgx",
    "login": "login logins login-node login-nodes login-compiler-node slurm-login submit submit-node",
    "storage": "storage storage-node storage-nodes nfs nfs-server slurm-nfs fileserver file-server",
}
_BY_WORD = {word: role for role, words in _ROLES.items() for word in words.split()}
_NOT_A_NODE = re.compile(
    r"(^|-)(switch|switches|tor|leaf|spine|router|firewall|pdu|pdus|ups|kvm|console|patch-panel|panel|cable|bastion|"
    r"chassis|enclosure|sensor|cooling|cdu|oob-switch|load-balancer|nvswitch)($|-)"
)
_ARCHITECTURE = re.compile(r"-(x86-64|aarch64)$")
_RELEASE = re.compile(r"-[a-z]+-\d+-\d+$")
_CONTROLLERS = ("slurm-master", "slurm-control-node", "slurm-controller", "slurm-control", "slurmctld")

_BOARD_MIB = 8 * 1024
"""Memory of GPUs is sold in steps of 8 GB: eight of 81559 MiB are 640 GB."""

RoleNames = Mapping[str, str]
"""Names of roles from the command line, to `head`, `worker`, `login`, `storage` or `ignore`."""


def plain(text: str) -> str:
    """`Slurm_Node` and `slurm node` as `slurm-node`; without the architecture that Omnia appends."""
    word = re.sub(r"[^a-z0-9]+", "-", text.strip().lower()).strip("-")
    bare = _ARCHITECTURE.sub("", word)
    return _RELEASE.sub("", bare) if bare != word else bare


def role_names(given: Collection[str]) -> dict[str, str]:
    """`--role NAME=ROLE` options as a mapping. Raises RackwrightError for one that is not of that form."""
    allowed = [*NodeRole, IGNORE]
    found: dict[str, str] = {}
    for text in given:
        name, sign, role = text.rpartition("=")
        if not sign or not name or role not in allowed:
            error = RackwrightError(
                f"--role {short(text)} is not NAME=ROLE with one of: {', '.join(allowed)}.",
                hint="e.g. `--role gpubox=worker`",
            )
            error.exit_code = ExitCode.USAGE
            raise error
        found[plain(name)] = role
    return found


def role_of(text: str, given: RoleNames) -> str | None:
    """The role of a name: one of NodeRole, or `ignore` for what is not a node; None where it is not certain."""
    word = plain(text)
    found = given.get(word) or _BY_WORD.get(word)
    if found is None and _NOT_A_NODE.search(word):
        return IGNORE
    return found


def is_controller(text: str) -> bool:
    """Whether a group is the one of Slurm's controller, which is the primary head."""
    return plain(text) in _CONTROLLERS


def os_of(text: str) -> str | None:
    """The release that a text names: `Ubuntu 22.04.4 LTS`, `rocky9`, `Red Hat Enterprise Linux 9.4`."""
    lowered = text.strip().lower()
    if lowered in RELEASES:
        return lowered
    words = re.findall(r"[a-z]+|\d+(?:\.\d+)*", lowered)
    initials = "".join(word[0] for word in words if word.isalpha())
    versions = [word for word in words if not word.isalpha()]
    letters = "-".join(word for word in words if word.isalpha())
    for release in RELEASES:
        name, _, version = release.rpartition("-")
        named = re.search(rf"(^|-){name}(-|$)", letters) or (len(initials) > 3 and initials == name)
        if named and any(one == version or one.startswith(f"{version}.") for one in versions[:1]):
            return release
    return None


def sku_of(model: str, maker: str = "") -> str | None:
    """The SKU of the catalogue that a model's name is certainly; None for what may be another one too.

    Certain: the model holds the SKU's name whole, and each further word is its maker's or in the SKU's description.
    """
    wanted = _words(model)
    best: tuple[int, str] | None = None
    for name, sku in catalogue().items():
        words = _words(name)
        at = _position(words, wanted)
        if at is None:
            continue
        rest = {*wanted[:at], *wanted[at + len(words) :]}
        if rest <= _allowed(sku, maker) and (best is None or len(words) > best[0]):
            best = (len(words), name)
    return None if best is None else best[1]


def near_skus(model: str, count: int = 3) -> list[str]:
    """The SKUs whose names and descriptions share the most words with a model's, the nearest first; never empty."""
    wanted = set(_words(model))
    score = {
        name: (2 * len(wanted & set(_words(name))) + len(wanted & set(_words(sku.description))))
        for name, sku in catalogue().items()
        if not name.startswith("lab-")
    }
    ranked = sorted(score, key=lambda name: -score[name])
    near = [name for name in ranked[:count] if score[name] > 1]
    return near or ["cpu-64c-256g"]


def _allowed(sku: Sku, maker: str) -> set[str]:
    whole = (
        ""
        if sku.gpus is None
        else f"{_BOARD_MIB * round(sku.gpus.memory_mib / _BOARD_MIB) * sku.gpus.count // 1024} gb"
    )
    texts = (sku.description, sku.vendor, maker, whole)
    return {*(word for text in texts for word in _words(text)), "system", "server", "node"}


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+", text.lower().replace(",", ""))


def _position(words: list[str], within: list[str]) -> int | None:
    for at in range(len(within) - len(words) + 1):
        if within[at : at + len(words)] == words:
            return at
    return None
