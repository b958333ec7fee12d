"""Inputs of one installation's answers, before a machine is touched and once its disks are approved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rackwright.errors import InstallError
from rackwright.install.installers import answers
from rackwright.install.installers.request import Answers, OsDisk, Request
from rackwright.install.installers.validate import require_valid
from rackwright.install.recovery import recovery_key
from rackwright.install.verdict import Verdict
from rackwright.model.cluster import Cluster, Node
from rackwright.model.install import BootNetwork, Install

_SAMPLE_CA = "-----BEGIN CERTIFICATE-----\nc2FtcGxl\n-----END CERTIFICATE-----\n"
SAMPLE = "sample-of-random-text"
"""Placeholder for random values in answers that are only validated."""


@dataclass(frozen=True)
class Site:
    """What is the same for all nodes of a run."""

    cluster: Cluster
    network: BootNetwork
    key: str
    """Public key for the administrator's account."""
    ca: str = _SAMPLE_CA
    """PEM of the CA that signed the head's certificate."""


def approved(node: Node, verdict: Verdict) -> list[dict[str, Any]]:
    """The chosen disks, as the journal keeps them."""
    rule = _of(node).disk
    return [
        {
            "path": one.disk.path,
            "serial": one.serial,
            "signatures": list(one.disk.signatures),
            "by_path": next((name for name in rule.by_path if name in one.disk.by_path), None),
        }
        for one in verdict.chosen
    ]


def still_declared(node: Node, disks: Sequence[dict[str, Any]]) -> None:
    """InstallError if the declaration names other disks than were approved."""
    rule = _of(node).disk
    others = [one for one in disks if rule.serials and one["serial"] not in rule.serials]
    others += [one for one in disks if rule.by_path and one.get("by_path") not in rule.by_path]
    if others or not disks:
        names, declared = (", ".join(one) for one in ([str(disk["serial"]) for disk in disks], _names(node)))
        raise InstallError(
            f"The disks approved for {node.name} were {names or 'none'}, but {declared} is declared."
        )


def _names(node: Node) -> list[str]:
    rule = _of(node).disk
    return [*rule.serials, *rule.by_path, *([] if rule.model is None else [f"the model {rule.model}"])]


def sample(site: Site, node: Node) -> tuple[Request, Answers]:
    """Sample answers, to be validated before any machine is touched."""
    install = _of(node)
    serials = (*install.disk.serials, *(f"SAMPLE{number}" for number in range(install.disks)))
    disks = [
        {"path": f"/dev/sample{number}", "serial": one} for number, one in enumerate(serials[: install.disks])
    ]
    return made(site, node, "sample", disks, SAMPLE, SAMPLE)


def made(
    site: Site, node: Node, run: str, disks: Sequence[dict[str, Any]], folder: str, session: str
) -> tuple[Request, Answers]:
    """The answers of one installation; InstallError if the installer cannot perform it."""
    network = site.network
    try:
        request = Request(
            cluster=site.cluster,
            node=node,
            run=run,
            disks=tuple(_disk(one) for one in disks),
            admin_key=site.key,
            head=f"https://{network.server}:{network.port}",
            ca=site.ca,
            files_url=f"http://{network.server}:{network.answers_port}/{folder}/",
            session=session,
            recovery=recovery_key(site.cluster, node),
            media=_of(node).installer_media,
        )
        return request, answers.make(request)
    except ValueError as error:  # e.g. a value from the agent that must not go into a script
        raise InstallError(f"{node.name}: cannot generate the answers: {error}.") from error


def valid(request: Request, found: Answers) -> None:
    """InstallError if a validator rejects the answers or cannot check them: unknown is not a pass."""
    if unknown := require_valid(request, found):
        raise InstallError(
            f"The answers for {request.node.name} could not be validated: "
            + "; ".join(map(str, unknown))
            + "."
        )


def _disk(found: dict[str, Any]) -> OsDisk:
    return OsDisk(
        str(found["path"]), str(found["serial"]), tuple(found.get("signatures", ())), found.get("by_path")
    )


def _of(node: Node) -> Install:
    if node.install is None:
        raise InstallError(f"{node.name} has no `install` section.")
    return node.install
