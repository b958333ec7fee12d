"""Files of the object_store role: shared by the deploy and its checks."""

from __future__ import annotations

import re
from collections.abc import Callable
from shlex import quote

from rackwright.model.cluster import Node
from rackwright.render import render
from rackwright.roles.object_store.options import PREFIX, UNITS, BucketMount, ObjectStoreOptions

PROFILE = "/etc/profile.d/rackwright-object-store.sh"
FOLDER = "/etc/rackwright/object-store"
WRAPPER = "/usr/local/bin/rclone"
"""rclone 1.60 ends with LoadCustomCABundleError where AWS_CA_BUNDLE is set (seen with Debian 12's, 2026-11-26)."""
MARKER = "# Written by rackwright"
"""In every version of the wrapper: a site may have its own rclone there."""
_LEFTOVER = re.compile(rf"(?:{UNITS}|{FOLDER})/({PREFIX}.+)\.(?:service|env)")


def rclone_variables(options: ObjectStoreOptions) -> dict[str, str]:
    """rclone's remotes; keys come from each user's environment."""
    found: dict[str, str] = {}
    for name, one in options.endpoints.items():
        values = {
            "TYPE": "s3",
            "PROVIDER": one.provider,
            "ENV_AUTH": "true",
            "ENDPOINT": one.url,
            "REGION": one.region,
            "FORCE_PATH_STYLE": str(one.path_style).lower(),
        }
        found |= {f"RCLONE_CONFIG_{name.upper()}_{key}": value for key, value in values.items()}
    return found


def user_variables(node: Node, options: ObjectStoreOptions) -> dict[str, str]:
    """What login shells have, unless a user set it already."""
    default, ca = options.default_endpoint, options.ca_file(node)
    found = {
        "AWS_ENDPOINT_URL_S3": default.url,
        "AWS_REGION": default.region,
        "AWS_DEFAULT_REGION": default.region,
    }
    found |= {"AWS_CA_BUNDLE": ca} if ca is not None else {}
    if options.rclone:
        found |= rclone_variables(options)
        found |= {"RCLONE_CA_CERT": ca} if ca is not None else {}
    return found


def profile(node: Node, options: ObjectStoreOptions) -> str:
    """PROFILE."""
    return render("object_store/profile.sh.j2", variables=user_variables(node, options))


def wrapper(node: Node, options: ObjectStoreOptions) -> str | None:
    """WRAPPER; None where no variable is in rclone's way."""
    if not options.rclone or options.ca_file(node) is None:
        return None
    return render("object_store/rclone.sh.j2")


def keys_path(options: ObjectStoreOptions, path: str) -> str:
    """File of a mount's keys."""
    return f"{FOLDER}/{options.unit_of(path).removesuffix('.service')}.env"


def keys(mount: BucketMount, reveal: Callable[[str], str]) -> str:
    """The keys of a mount, as EnvironmentFile= reads them (systemd.exec(5)); holds secrets."""
    given = {
        "AWS_ACCESS_KEY_ID": reveal(mount.access_key).strip(),
        "AWS_SECRET_ACCESS_KEY": reveal(mount.secret_key).strip(),
    }
    return "".join(f"{name}={_quoted(value)}\n" for name, value in given.items())


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def unit(node: Node, options: ObjectStoreOptions, path: str) -> str:
    """The service of a mount."""
    mount = options.mounts[path]
    environment = rclone_variables(options) if mount.tool == "rclone" else {}
    return render(
        "object_store/mount.service.j2",
        path=path,
        mount=mount,
        endpoint=options.endpoints[mount.endpoint],
        environment=environment,
        ca=options.ca_file(node),
        keys=keys_path(options, path),
    )


def files(node: Node, options: ObjectStoreOptions) -> dict[str, str | None]:
    """Files without secrets, by path; None for what must not exist."""
    units = {f"{UNITS}/{options.unit_of(path)}": unit(node, options, path) for path in options.mounts}
    return {PROFILE: profile(node, options), WRAPPER: wrapper(node, options), **units}


def of_ours() -> str:
    """Shell: the paths of all mount services and keys that this role has written."""
    return f"ls -d {UNITS}/{PREFIX}*.service {FOLDER}/{PREFIX}*.env 2>/dev/null | sort"


def leftovers(printed: str | None, options: ObjectStoreOptions) -> tuple[str, ...]:
    """Names of mounts that are declared no more, from what `of_ours` prints: of their service and keys, less the ending."""
    declared = {options.unit_of(path).removesuffix(".service") for path in options.mounts}
    found = (_LEFTOVER.fullmatch(line) for line in (printed or "").splitlines())
    return tuple(dict.fromkeys(one[1] for one in found if one is not None and one[1] not in declared))


def present(name: str) -> str:
    """Shell that prints `gone` where a leftover is."""
    service, env = (quote(path) for path in leftover_paths(name))
    return f"[ -e {service} ] || [ -e {env} ] || echo gone"


def remove(name: str) -> str:
    """Shell that unmounts a leftover and removes its files, the service last: until then it is found again."""
    service, env = (quote(path) for path in leftover_paths(name))
    return (
        f"{{ [ ! -e {service} ] || systemctl disable --now --quiet {quote(f'{name}.service')}; }} && "
        f"rm -f {env} && rm -f {service} && systemctl daemon-reload"
    )


def leftover_paths(name: str) -> tuple[str, str]:
    """The service and the keys of a mount by its name."""
    return f"{UNITS}/{name}.service", f"{FOLDER}/{name}.env"
