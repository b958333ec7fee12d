"""Boot order overrides: what a BMC reports, and whether it applied a request."""

from __future__ import annotations

from rackwright.bmc.documents import Document, link, sub, text
from rackwright.bmc.interface import BootOverride, BootTarget
from rackwright.bmc.redfish_tree import Tree

NAMES = {
    BootTarget.DISK: "Hdd",
    BootTarget.CD: "Cd",
    BootTarget.PXE: "Pxe",
    BootTarget.HTTP: "UefiHttp",
    BootTarget.SETUP: "BiosSetup",
    BootTarget.NONE: "None",
}
"""Redfish names."""
_READ_AS = {name.lower(): target for target, name in NAMES.items()} | {"usbcd": BootTarget.CD}
_TRIES = 10
_PAUSE_SECONDS = 1.0


def boot_of(system: Document) -> BootOverride:
    """The override in a system's document; a disabled one counts as none."""
    boot = sub(system, "Boot")
    enabled = (text(boot, "BootSourceOverrideEnabled") or "disabled").lower()
    target = _READ_AS.get((text(boot, "BootSourceOverrideTarget") or "none").lower(), BootTarget.NONE)
    if enabled == "disabled" or target is BootTarget.NONE:
        return BootOverride(BootTarget.NONE)
    uri = text(boot, "HttpBootUri") if target is BootTarget.HTTP else None
    return BootOverride(target, enabled == "once", uri)


def await_target(tree: Tree, wanted: BootTarget) -> None:
    """Return once the BMC reports this target, or none at all; BmcError if it keeps reporting another.

    Its duration is not compared: sushy-tools reports `Continuous` even for a one-time override.
    """
    for left in reversed(range(_TRIES)):
        reported = _reported(tree)
        if not reported or wanted in [_READ_AS.get(name.lower()) for name in reported]:
            return
        if not left or not tree.session.pause(_PAUSE_SECONDS):
            break
    raise tree.session.target.cannot(
        f"boot from {NAMES[wanted]}: it accepted that, but reports the target {' and '.join(reported)}",
        hint="reset the BMC itself, e.g. in its web interface, or declare another `boot` method for this node",
    )


def _reported(tree: Tree) -> list[str]:
    """Current targets: some BMCs show a new setting only in the settings for the next boot."""
    system = tree.system()
    settings = tree.optional(link(sub(system, "@Redfish.Settings"), "SettingsObject"))
    names = [text(sub(one, "Boot"), "BootSourceOverrideTarget") for one in (system, settings)]
    return list(dict.fromkeys(filter(None, names)))
