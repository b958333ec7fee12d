"""Checks of the podman role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.containers import has_registry_files, registries_hold, same
from rackwright.claims.files import as_rendered, text_of
from rackwright.claims.user_folders import only_their_users
from rackwright.roles.podman import texts
from rackwright.roles.podman.options import SUBIDS, PodmanOptions, users


def _files(context: CheckContext[PodmanOptions]) -> str:
    declared = texts.declared(context.cluster, context.node, context.options)
    as_rendered(context, declared)
    return f"{len(declared)} files"


def _value(info: Any, *keys: str) -> Any:  # noqa: ANN401 - JSON
    """A value of `podman info`; Undetermined if it is missing."""
    for key in keys:
        if not isinstance(info, Mapping) or key not in info:
            raise Undetermined(f"podman does not report its {'.'.join(keys)}")
        info = info[key]
    return info


def _settings(context: CheckContext[PodmanOptions]) -> str:
    options = context.options
    info = context.json("podman info --format json")
    same(_value(info, "store", "graphRoot"), options.graph_root, "podman's graphRoot")
    same(_value(info, "store", "graphDriverName"), options.storage_driver, "podman's storage driver")
    same(_value(info, "host", "cgroupManager"), options.cgroup_manager, "podman's cgroup manager")
    same(_value(info, "host", "ociRuntime", "name"), "crun", "podman's runtime")
    if texts.has_netavark(context.node.os):
        same(_value(info, "host", "networkBackend"), "netavark", "podman's network backend")
    return f"podman {_value(info, 'version', 'Version')}: {options.storage_driver} in {options.graph_root}"


def _mirror(context: CheckContext[PodmanOptions]) -> str:
    wanted = context.cluster.mirrors.containers
    registries = _value(context.json("podman info --format json"), "registries")
    entry = registries.get("docker.io") if isinstance(registries, Mapping) else None
    mirrors = (entry or {}).get("Mirrors") or []
    found = [mirror.get("Location") for mirror in mirrors]
    same(found, [] if wanted is None else [wanted], "podman's mirror of docker.io")
    return f"docker.io through {wanted}" if wanted else "no mirror, as declared"


def _subids(context: CheckContext[PodmanOptions]) -> str:
    """What newuidmap will allow, as the kernel's own helper sees it: no two ranges may meet."""
    declared = users(context.node)
    for path in (texts.SUBUID, texts.SUBGID):
        found: dict[str, tuple[int, int]] = {}
        for line in text_of(context, path).splitlines():
            fields = line.split(":")
            if len(fields) != 3 or not (fields[1] + fields[2]).isdigit():
                raise Undetermined(f"{path} has an unreadable line: {line!r}")
            start, count = int(fields[1]), int(fields[2])
            for other, (first, many) in found.items():
                if start < first + many and first < start + count:
                    fail(f"{fields[0]} and {other} share ids in {path}")
            found[fields[0]] = (start, count)
        for name, uid in declared:
            same(found.get(name), (uid * SUBIDS, SUBIDS), f"{name}'s range in {path}")
    return f"{len(declared)} users, {SUBIDS} ids each"


def _helpers(context: CheckContext[PodmanOptions]) -> str:
    """Without their capabilities (or setuid bit) no user gets more than one id."""
    for tool in ("newuidmap", "newgidmap"):
        path = context.output("sh -c %s", f"command -v {tool}").strip()
        mode = context.output("stat -L -c %%a %s", path).strip()
        caps = context.host.run("getcap %s", path)
        if not (mode.startswith("4") and len(mode) == 4) and f"cap_set{tool[3]}id" not in str(caps.stdout):
            if caps.rc in (126, 127):
                raise Undetermined(f"{path} is not setuid, and getcap is not there to ask for capabilities")
            fail(f"{path} has mode {mode} and no capabilities: users get no subordinate ids")
    return "newuidmap and newgidmap have their rights"


def _registries(context: CheckContext[PodmanOptions]) -> str:
    return registries_hold(context, texts.LOGINS, context.options.auth_json)


CHECKS = (
    Check(
        "Podman's registry certificates and logins are as declared",
        _registries,
        applies=has_registry_files,
    ),
    Check("Podman's files are as declared", _files),
    Check("Podman has its declared settings", _settings),
    Check("Podman pulls through the declared mirror", _mirror),
    Check("every user has separate subordinate ids", _subids),
    Check(
        "users' Podman folders are private",
        lambda context: only_their_users(context, texts.folders(context.options)),
        applies=lambda node, options: options.rootless_root is not None,
    ),
    Check("users can use their subordinate ids", _helpers),
)
