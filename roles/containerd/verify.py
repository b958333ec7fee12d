"""Checks of the containerd role."""

from __future__ import annotations

import re
import tomllib
from functools import partial
from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.containers import same, trusts_site_registries
from rackwright.claims.files import as_rendered, has_access, holds_secret_text
from rackwright.claims.units import runs
from rackwright.roles.containerd import texts
from rackwright.roles.containerd.options import ContainerdOptions
from rackwright.secrets.store import store_of

_CRI = {
    "1.7": ("io.containerd.grpc.v1.cri", "io.containerd.grpc.v1.cri"),
    "2": ("io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images"),
}
"""By release: the plugins that hold runtimes and registries."""


def _files(context: CheckContext[ContainerdOptions]) -> str:
    store = store_of(context.cluster)
    options = context.options
    declared = texts.declared(context.cluster, context.node, options, lambda name: store.get(name).reveal())
    secret = texts.with_logins(context.cluster, options)
    as_rendered(context, {path: text for path, text in declared.items() if path not in secret})
    for path in sorted(secret):
        holds_secret_text(context, path, declared[path])
        has_access(context, path, "600", "root", "root")
    as_rendered(context, options.ca_files(context.cluster))
    trusts_site_registries(context)
    return f"{len(declared)} files"


def _release(context: CheckContext[ContainerdOptions]) -> str:
    """`containerd github.com/containerd/containerd/v2 v2.1.5 fcd43222d6b0...`; Debian leaves the v out."""
    wanted = context.options.effective_release
    output = context.output("containerd --version")
    found = re.search(r"\sv?(\d+)\.(\d+)\.", output)
    if found is None:
        raise Undetermined(f"`containerd --version` printed {output.strip()!r}")
    major = "2" if found[1] == "2" else "1.7"
    if major != wanted:
        fail(f"containerd {found[1]}.{found[2]} is installed, but its configuration is for {wanted}")
    return f"containerd {found[1]}.{found[2]}"


def _settings(context: CheckContext[ContainerdOptions]) -> str:
    options = context.options
    output = context.output("containerd config dump")
    try:
        config: dict[str, Any] = tomllib.loads(output)
        cri, images = (config["plugins"][name] for name in _CRI[options.effective_release])
        runc = cri["containerd"]["runtimes"]["runc"]["options"]
        found = {
            "root": config["root"],
            "SystemdCgroup": runc["SystemdCgroup"],
            "enable_cdi": cri.get("enable_cdi", False),
            "registry config_path": images["registry"]["config_path"],
        }
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise Undetermined(f"`containerd config dump` has no readable CRI settings: {error}") from error
    wanted = {
        "root": options.root,
        "SystemdCgroup": options.systemd_cgroup,
        "enable_cdi": texts.has_cdi(context.node, options),
        "registry config_path": texts.REGISTRIES,
    }
    for key, value in wanted.items():
        same(found[key], value, f"containerd's {key}")
    return f"data in {options.root}, SystemdCgroup {str(options.systemd_cgroup).lower()}"


def _plugins(context: CheckContext[ContainerdOptions]) -> str:
    """Columns of `ctr plugins ls`: TYPE ID PLATFORMS STATUS."""
    lines = [line.split() for line in context.output("ctr plugins ls").splitlines()]
    cri = [
        line[-1]
        for line in lines
        if line
        and line[0].startswith(("io.containerd.grpc", "io.containerd.cri"))
        and len(line) > 2
        and line[1] in ("cri", "runtime", "images")
    ]
    if not lines:
        raise Undetermined("`ctr plugins ls` printed nothing")
    if not cri:
        fail("containerd runs without its CRI plugin")
    if set(cri) != {"ok"}:
        fail(f"containerd's CRI plugin is in state {next(state for state in cri if state != 'ok')}")
    return "the CRI plugin is ok"


CHECKS = (
    Check("containerd is running", partial(runs, unit=texts.UNIT), settle_seconds=20),
    Check("containerd's files are as declared", _files),
    Check("containerd's release matches its configuration", _release),
    Check("containerd has its declared settings", _settings),
    Check("containerd's CRI plugin works", _plugins, settle_seconds=20),
)
