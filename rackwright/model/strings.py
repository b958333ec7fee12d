"""Text types for options that end up in files and commands: they exclude characters with a special meaning there.

Quotes, `#`, `;`, `%` and spaces have special meanings in the files of apt, dnf, sshd, Slurm, systemd and shells, so a
type allows only what its values need. Line breaks and control characters are already refused in every text
(rackwright.model.plain_text).
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, StringConstraints

from rackwright.model.text import mistake

_URL = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~+:%/-]*)?")
_PATH = re.compile(r"(/[A-Za-z0-9._-]+)+")
_REGISTRY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?")

URL_HINT = "configure the login in the site's proxy or mirror, not in the cluster file"


def _http_url(url: str) -> str:
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise mistake("The URL contains credentials.", URL_HINT)
    try:
        parts = urlsplit(url)
        fits = _URL.fullmatch(url) is not None and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port above 65535
        fits = False
    if not fits:
        raise mistake("Not a valid http or https URL.", "e.g. `http://mirror.example.com/debian`")
    return url


def not_climbing(path: str) -> str:
    """A path without `.` and `..`, which give one folder two spellings or lead out of it."""
    if any(step in (".", "..") for step in path.split("/")):
        raise mistake("The path contains `.` or `..`.", "write the full path, e.g. `/scratch/docker`")
    return path


def _node_path(path: str) -> str:
    if not _PATH.fullmatch(path):
        raise mistake(
            "Not a valid absolute path: letters, digits, `.`, `_` and `-` between slashes.",
            "e.g. `/scratch/docker`",
        )
    return not_climbing(path)


def _registry(name: str) -> str:
    if not _REGISTRY.fullmatch(name):
        raise mistake("Not a valid registry.", "write host or host:port, e.g. `registry.example.com:5000`")
    return name


HttpUrl = Annotated[str, AfterValidator(_http_url)]
"""http or https URL with a host, without credentials, quotes, spaces or other syntax of apt, dnf or pip files."""
NodePath = Annotated[str, AfterValidator(_node_path)]
"""An absolute path on a node that needs no quoting in any file or shell."""
RegistryName = Annotated[str, AfterValidator(_registry)]
"""host or host:port of a container registry."""

UserName = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_-]{0,30}$")]
GroupName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}$")]
"""A Unix group; directory groups may have capitals, dots and `@`."""
SecretName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
"""Name of a secret in the store."""
UnitName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9@._:-]{0,199}$")]
"""A systemd unit name, which no command takes for a flag."""
InterfaceName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$")]
"""A network interface or block device: a name in /sys."""
PackageName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9+._:-]{0,199}$")]
PackageFile = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9+._~-]{0,254}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
KernelRelease = Annotated[str, StringConstraints(pattern=r"^[0-9][A-Za-z0-9._+~-]{2,63}$")]
"""As uname -r prints it."""
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}$")]
"""A word that is only a name in a file, and never a flag."""
Version = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z._+~:() -]{0,63}$")]
"""A version as a device prints it."""
Guid = Annotated[str, StringConstraints(pattern=r"^(0x)?[0-9a-f]{16}$")]
"""GUID of an InfiniBand node or port, as ibstat prints it or without the 0x."""
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
"""Lower-case words joined by `-`, used as file and unit name."""
LabelName = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_]{0,62}$")]
"""A label of Prometheus series."""
HostPort = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}$")]
"""host:port; an address or a DNS name."""
RegistryUser = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9$][A-Za-z0-9@._$+-]{0,127}$")]
"""A login at a registry, such as NGC's `$oauthtoken` or Harbor's `robot$ci`."""
JumpHost = Annotated[
    str,
    StringConstraints(
        pattern=r"^([a-z_][a-z0-9_-]{0,30}@)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$"
    ),
]
ImageReference = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][A-Za-z0-9./:_-]{0,254}(@sha256:[0-9a-f]{64})?$")
]
"""An image with its registry, and a tag or a digest: `registry.example.com:5000/nvidia/k8s-device-plugin:v0.20.0`."""
KubernetesName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""Name of a namespace and of other objects that are DNS labels."""
