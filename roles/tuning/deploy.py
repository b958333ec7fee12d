"""Applies the tuning role to a node, as far as its platform has it."""

from __future__ import annotations

from shlex import quote

from pyinfra.api.deploy import deploy

from rackwright.data import Site, site_of
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, packages, settings, sysctls, units
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.tuning import values
from rackwright.roles.tuning.options import TuningOptions

SYSCTL = "/etc/sysctl.d/90-rackwright.conf"
LIMITS = "/etc/security/limits.d/90-rackwright.conf"
MANAGER = "/etc/systemd/system.conf.d/90-rackwright.conf"
JOURNAL_FOLDER = "/etc/systemd/journald.conf.d"
TMPFILES = "/etc/tmpfiles.d/rackwright-hugepages.conf"
HUGEPAGES = "/sys/kernel/mm/transparent_hugepage/enabled"

# The swap lines of fstab that are not commented out, and the same line commented out.
_SWAP_LINES = r"^[^#[:space:]][^[:space:]]*[[:space:]]+[^[:space:]]+[[:space:]]+swap([[:space:]]|$)"


@deploy("tuning")
def tuning(options: TuningOptions) -> None:
    """Kernel values, limits, huge pages, CPU clock, swap and the journal."""
    site = site_of()
    platform = site.node.platform
    if has(platform, Capability.KERNEL):
        # before the kernel values: a profile that tuned leaves takes the values it set with it
        _tuned(site, options)
        _hugepages(options)
    _kernel(site, options)
    _limits(site, options)
    if has(platform, Capability.SWAP) and values.swap_off(site.node, options):
        _no_swap()
    _journal(options)


def _kernel(site: Site, options: TuningOptions) -> None:
    """What is out of scope is not in the file either: systemd-sysctl would fail at every boot."""
    declared = values.sysctls(site.node, options)
    mine = {key: value for key, value in declared.items() if values.in_scope(site.node, key)}
    raised = {key: mine[key] for key in values.at_least(site.node, options) if key in mine}
    files.file(
        name="Write the kernel values",
        path=SYSCTL,
        content=render(
            "tuning/sysctl.conf.j2",
            node=site.node,
            values={key: value for key, value in mine.items() if key not in raised},
            raised=raised,
            left_out=[key for key in declared if key not in mine],
        ),
    )
    sysctls.live(name="Set the kernel values", values=mine, at_least=tuple(raised))


def _limits(site: Site, options: TuningOptions) -> None:
    files.file(
        name="Write the limits for login sessions",
        path=LIMITS,
        content=render(
            "tuning/limits.conf.j2",
            limits=options.limits,
            nproc=values.process_limit(site.node, options),
        ),
    )
    files.directory(name="Create the folder for systemd settings", path="/etc/systemd/system.conf.d")
    memlock = str(options.daemon_memlock)
    files.file(
        name="Write the limits for services",
        path=MANAGER,
        content=render("tuning/system.conf.j2", memlock=memlock),
    )
    settings.setting(
        name="Reload systemd for the service limits",
        target="DefaultLimitMEMLOCK of the running systemd",
        read=values.MANAGER_MEMLOCK_READ,
        want=memlock,
        write="systemctl daemon-reexec",
    )


def _hugepages(options: TuningOptions) -> None:
    choice = options.transparent_hugepages
    files.file(
        name="Write the huge-page setting",
        path=TMPFILES,
        content=render("tuning/tmpfiles.conf.j2", choice=choice),
    )
    settings.setting(
        name="Set transparent huge pages",
        target="transparent huge pages",
        read=rf"sed -n 's/.*\[\(.*\)\].*/\1/p' {HUGEPAGES}",
        want=choice,
        write=f"printf %s {quote(choice)} >{HUGEPAGES}",
    )


def _tuned(site: Site, options: TuningOptions) -> None:
    tuned = names(site.node.family, "tuned")
    folder = f"{site.node.os.tuned_profiles}/rackwright"
    profile = f"{folder}/tuned.conf"
    packages.installed(name="Install tuned", packages=tuned.packages)
    files.directory(name="Create the folder for the tuned profile", path=folder)
    files.file(
        name="Write the tuned profile",
        path=profile,
        content=render(
            "tuning/tuned.conf.j2",
            owns_clock_rate=has(site.node.platform, Capability.CPU_FREQUENCY),
            governor=values.governor(options),
            idle_states=values.idle_states(site.node, options),
            raised=values.at_least(site.node, options),
        ),
    )
    units.unit(name="Start tuned", unit=tuned.unit or "", restart_on=(profile,))
    settings.setting(
        name="Activate the tuned profile",
        target="active tuned profile",
        read="tuned-adm active | sed -n 's/^Current active profile: //p'",
        want="rackwright",
        write="tuned-adm profile rackwright",
    )


def _no_swap() -> None:
    units.unit(name="Mask swap", unit="swap.target", masked=True)
    settings.setting(
        name="Remove swap from /etc/fstab",
        target="swap lines in /etc/fstab",
        read=f"cat /etc/fstab | grep -cE {quote(_SWAP_LINES)} || true",
        want="0",
        write=f"sed -i -E {quote(f'/{_SWAP_LINES}/s/^/# no swap on this node: /')} /etc/fstab",
    )
    settings.setting(
        name="Disable swap",
        target="active swap areas",
        read="tail -n +2 /proc/swaps | wc -l",
        want="0",
        write="swapoff -a",
        disruptive=True,
    )


def _journal(options: TuningOptions) -> None:
    files.directory(name="Create the folder for journald settings", path=JOURNAL_FOLDER)
    files.file(
        name="Write journald's settings",
        path=f"{JOURNAL_FOLDER}/90-rackwright.conf",
        content=render("tuning/journald.conf.j2", journal=options.journal),
    )
    units.unit(
        name="Start journald with its settings",
        unit="systemd-journald.service",
        enabled=None,
        restart_on=(JOURNAL_FOLDER, "/etc/systemd/journald.conf"),
    )
