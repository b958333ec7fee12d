"""Applies the spectrum_x role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, settings, units
from rackwright.roles.spectrum_x import paths, texts
from rackwright.roles.spectrum_x.options import SpectrumXOptions


@deploy("spectrum_x")
def spectrum_x(options: SpectrumXOptions) -> None:
    """The program and its unit; then what the registers hold is compared."""
    site = site_of()
    cards = options.cards(site.cluster, site.node)
    if not cards:
        return
    for path, content in host.loop(texts.files(options, cards).items()):  # type: ignore[no-untyped-call]
        mode = "755" if path == paths.PROGRAM else "644"
        files.file(name=f"Write {path}", path=path, content=content, mode=mode)
    if not has(site.node.platform, Capability.HARDWARE):
        return
    units.unit(
        name="Set the NIC registers at boot", unit=paths.UNIT, restart_on=(paths.PROGRAM, paths.UNIT_PATH)
    )
    settings.setting(
        name="Set the NIC registers",
        target="adaptive routing of the NICs",
        read=f"{paths.PROGRAM} wrong",
        want="as declared",
        write=f"{paths.PROGRAM} apply",
        disruptive=True,
    )
