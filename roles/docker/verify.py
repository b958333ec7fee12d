"""Checks of the docker role."""

from __future__ import annotations

from functools import partial
from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.containers import has_registry_files, registries_hold, same
from rackwright.claims.files import as_rendered
from rackwright.claims.units import runs
from rackwright.facts.settings import Answer
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.docker.settings import (
    CONF,
    LOGINS,
    STARTED_READ,
    UNIT,
    daemon_json,
    declared,
    logins,
    needs_restart,
)

_INFO = "docker info --format %s"
_JSON = "{{json .}}"


def _conf(context: CheckContext[DockerOptions]) -> str:
    wanted = daemon_json(context.cluster, context.node, context.options)
    return as_rendered(context, {CONF: wanted})


def _started(context: CheckContext[DockerOptions]) -> str:
    settings = declared(context.cluster, context.node, context.options)
    if needs_restart(context.fact(Answer, STARTED_READ), settings):
        fail("the docker daemon was started with settings that differ from the declared ones")
    return "the daemon was started with the declared settings"


def _info(context: CheckContext[DockerOptions]) -> dict[str, Any]:
    info = context.json(_INFO, _JSON)
    if not isinstance(info, dict) or not info.get("ServerVersion"):
        raise Undetermined("the docker daemon does not answer")
    return info


def _settings(context: CheckContext[DockerOptions]) -> str:
    options, info = context.options, _info(context)
    for key, wanted in (
        ("DockerRootDir", options.data_root),
        ("Driver", options.storage_driver),
        ("LoggingDriver", options.log_driver),
        ("CgroupDriver", options.cgroup_driver),
        ("LiveRestoreEnabled", options.live_restore),
        ("DefaultRuntime", options.default_runtime),
    ):
        if key not in info:
            raise Undetermined(f"docker does not report its {key}")
        same(info[key], wanted, f"docker's {key}")
    missing = sorted(set(options.runtimes) - set(info.get("Runtimes") or {}))
    if missing:
        fail(f"docker has no runtime {missing[0]}")
    return f"docker {info['ServerVersion']}: {info['Driver']} in {info['DockerRootDir']}"


def _registries(context: CheckContext[DockerOptions]) -> str:
    options, info = context.options, _info(context)
    config = info.get("RegistryConfig")
    if not isinstance(config, dict):
        raise Undetermined("docker does not report its registries")
    mirror = options.mirror(context.cluster)
    found = [url.rstrip("/") for url in config.get("Mirrors") or []]
    same(found, [] if mirror is None else [mirror], "docker's mirror")
    known = {
        name for name, entry in (config.get("IndexConfigs") or {}).items() if not entry.get("Secure", True)
    }
    same(sorted(known), sorted(options.plain_http), "docker's list of insecure registries")
    return f"mirror {mirror or 'none'}, insecure: {', '.join(options.plain_http) or 'none'}"


def _members(context: CheckContext[DockerOptions]) -> str:
    fields = context.output("getent group docker").strip().split(":")
    if len(fields) != 4:
        raise Undetermined("getent did not print the group docker")
    found = sorted(filter(None, fields[3].split(",")))
    wanted = sorted(context.options.users)
    if extra := [name for name in found if name not in wanted]:
        fail(f"{', '.join(extra)} may become root through group docker but is not declared")
    if missing := [name for name in wanted if name not in found]:
        fail(f"{', '.join(missing)} is not in group docker")
    return f"{', '.join(found)}: each is root on this node" if found else "no members"


def _registry_files(context: CheckContext[DockerOptions]) -> str:
    return registries_hold(context, LOGINS, lambda secret: logins(context.options, secret))


CHECKS = (
    Check("Docker is running", partial(runs, unit=UNIT), settle_seconds=20),
    Check("daemon.json is as declared", _conf),
    Check("Docker was started with its declared settings", _started),
    Check("Docker has its declared settings", _settings, settle_seconds=10),
    Check("Docker has the declared mirror and insecure registries", _registries, settle_seconds=10),
    Check("only declared users are in group docker", _members),
    Check(
        "Docker's registry certificates and logins are as declared",
        _registry_files,
        applies=has_registry_files,
    ),
)
