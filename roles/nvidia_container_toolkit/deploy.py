"""Applies the nvidia_container_toolkit role to a node."""

from __future__ import annotations

from shlex import quote

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.lock.for_roles import component, group_for
from rackwright.lock.versions import at_least, upstream
from rackwright.operations import files, packages, settings, units
from rackwright.render import render
from rackwright.roles.nvidia_container_toolkit.options import CONFIG, MODE_READ, NvidiaContainerToolkitOptions

CONTAINERD = "/etc/containerd/conf.d/99-nvidia.toml"
SPEC = "/var/run/cdi/nvidia.yaml"
OWN_UNIT = "rackwright-cdi.service"
_PLUGINS = {"v2": (2, "io.containerd.grpc.v1.cri"), "v3": (3, "io.containerd.cri.v1.runtime")}
# Both ways the toolkit ships it: on a driver's installation or removal, and at boot.
_REFRESH = ("nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service")
_REFRESH_FROM = "1.18"
"""Release notes of the toolkit (https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/), read 2026-11-20."""


@deploy("nvidia_container_toolkit")
def nvidia_container_toolkit(options: NvidiaContainerToolkitOptions) -> None:
    """Four packages of one version, the runtime's mode, the CDI spec."""
    site = site_of()
    group = group_for(site)
    packages.installed(
        name="Install the container toolkit as locked", packages=component(group, *options.parts), hold=True
    )
    settings.setting(
        name="Set the runtime's device mode",
        target="mode of nvidia-container-runtime",
        read=MODE_READ,
        want=options.mode,
        write="nvidia-ctk config --in-place "
        f"--set {quote(f'nvidia-container-runtime.mode={options.mode}')} --config-file={CONFIG}",
    )
    _containerd(options)
    _spec(upstream(group.packages["nvidia-container-toolkit"]))


def _containerd(options: NvidiaContainerToolkitOptions) -> None:
    if options.containerd == "off":
        files.absent(name="Remove the nvidia runtime from containerd", path=CONTAINERD)
        return
    version, plugin = _PLUGINS[options.containerd]
    files.directory(name="Create the folder for containerd drop-ins", path="/etc/containerd/conf.d")
    files.file(
        name="Add the nvidia runtime to containerd",
        path=CONTAINERD,
        content=render("nvidia_container_toolkit/containerd.toml.j2", version=version, plugin=plugin),
    )


def _spec(version: str) -> None:
    """The toolkit's own units where it has them, otherwise one of rackwright's; and the spec itself, now."""
    if at_least(version, _REFRESH_FROM):
        service = _REFRESH[1]
        units.unit(name="Renew the CDI spec with the driver", unit=_REFRESH[0])
    else:
        service = OWN_UNIT
        files.file(
            name="Write the unit that creates the CDI spec",
            path=f"/etc/systemd/system/{OWN_UNIT}",
            content=render("nvidia_container_toolkit/cdi.service.j2"),
        )
    units.unit(name="Create the CDI spec at boot", unit=service, running=None)
    settings.setting(
        name="Create the CDI spec",
        target=SPEC,
        read=f"[ -s {SPEC} ] && echo there",
        want="there",
        write=f"systemctl restart {service}",
    )
