"""Checks of the tuning role, read from the running system and not from the files it wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from rackwright.claims.check import Check, CheckContext, NotInScope, Undetermined, fail
from rackwright.claims.files import at_path
from rackwright.claims.kernel import sysctls_at_boot
from rackwright.claims.units import is_masked, runs
from rackwright.facts.kernel import Sysctls, high_enough, proc_path
from rackwright.facts.settings import Answer
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability, why_lacking
from rackwright.model.types import Platform
from rackwright.roles.tuning import values
from rackwright.roles.tuning.options import Limit, TuningOptions
from rackwright.roles.tuning.readings import (
    parse_choice,
    parse_json_lines,
    parse_limits,
    parse_size,
    parse_swaps,
    parse_unit_config,
)

_HUGEPAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
_GOVERNORS = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
_JOURNAL_USAGE = "ec387f577b844b8fa948f33cad9a75e6"
"""MESSAGE_ID of the message in which journald reports its limits at every start (sd-messages.h)."""


def _kernel_value(context: CheckContext[TuningOptions], key: str) -> str:
    expected = values.sysctls(context.node, context.options)[key]
    found = context.fact(Sysctls, (key,), may_be_empty=True).get(key)
    if found is None and at_path(context, proc_path(key), digest_only=True).kind == "absent":
        fail(f"this kernel has no {key}")
    if not found:
        raise Undetermined(f"{proc_path(key)} cannot be read")
    if key in values.at_least(context.node, context.options):
        return _at_least(key, found, expected)
    if found != expected:
        fail(f"{key} is {found}, not {expected}")
    return f"{key} = {found}"


def _at_least(key: str, found: str, least: str) -> str:
    if not found.isdecimal():
        raise Undetermined(f"{key} is {found[:40]!r}, which is not a number")
    if not high_enough(found, least):
        fail(f"{key} is {found}, not {least} or more")
    return f"{key} = {found}" + (f", the kernel's own; at least {least}" if int(found) > int(least) else "")


def _own_keys(node: Node, options: TuningOptions) -> tuple[str, ...]:
    """Keys the cluster file names that this role would not choose by itself."""
    return tuple(key for key in options.sysctl if key not in values.KEYS)


def _site_values(context: CheckContext[TuningOptions], *, of_the_machine: bool) -> str:
    keys = [
        key
        for key in _own_keys(context.node, context.options)
        if values.is_of_the_network_namespace(key) is not of_the_machine
    ]
    reason = why_lacking(context.node.platform, Capability.KERNEL)
    if of_the_machine and reason is not None:  # not through `needs`, so that the keys are named
        raise NotInScope(f"{', '.join(keys)}: {reason}")
    return "; ".join(_kernel_value(context, key) for key in keys)


def _values_last(context: CheckContext[TuningOptions]) -> str:
    declared = values.sysctls(context.node, context.options)
    mine = {key: value for key, value in declared.items() if values.in_scope(context.node, key)}
    found = sysctls_at_boot(context)
    raised = values.at_least(context.node, context.options)
    for key, value in mine.items():
        at_boot = found.get(key.replace("/", "."))
        if key in raised and (at_boot is None or high_enough(at_boot, value)):
            continue  # the tuned profile raises it; only a file that sets a lower one is in its way
        if at_boot != value:
            fail(f"after a reboot {key} would be {at_boot or 'as the kernel has it'}, not {value}")
    return f"{len(mine)} values"


def _limit(value: Limit, unit: int) -> str:
    return "unlimited" if value == "unlimited" else str(int(value) * unit)


def _expected_limits(context: CheckContext[TuningOptions]) -> dict[str, str]:
    limits = context.options.limits
    nproc = values.process_limit(context.node, context.options)
    expected = {
        "memlock": _limit(limits.memlock, 1024),
        "stack": _limit(limits.stack, 1024),
        "nofile": str(limits.nofile),
    }
    return expected if nproc is None else {**expected, "nproc": str(nproc)}


def _compare_limits(found: Mapping[str, tuple[str, str]], expected: Mapping[str, str]) -> str:
    for name, value in expected.items():
        if name not in found:
            raise Undetermined(f"prlimit does not report {name}")
        if found[name] != (value, value):
            soft, hard = found[name]
            fail(f"{name} is {soft} (at most {hard}), not {value}")
    return ", ".join(f"{name} {value}" for name, value in expected.items())


def _session_limits(context: CheckContext[TuningOptions]) -> str:
    _can_raise_limits(context.node)
    expected = _expected_limits(context)
    output = context.output(
        "runuser -u %s -- prlimit --noheadings --output=RESOURCE,SOFT,HARD " + _flags(expected),
        context.cluster.ssh.user,
    )
    return _compare_limits(parse_limits(output), expected)


def _service_limits(context: CheckContext[TuningOptions]) -> str:
    _can_raise_limits(context.node)
    output = context.output(
        "systemd-run --quiet --pipe --wait prlimit --noheadings --output=RESOURCE,SOFT,HARD --memlock"
    )
    memlock = context.options.daemon_memlock
    return _compare_limits(
        parse_limits(output), {"memlock": "unlimited" if memlock == "infinity" else str(memlock)}
    )


def _can_raise_limits(node: Node) -> None:
    if node.platform is Platform.CONTAINER:
        raise NotInScope("a container's limits cannot exceed those of the process that started it")


def _flags(limits: Mapping[str, str]) -> str:
    return " ".join(f"--{name}" for name in limits)


def _manager_limit(context: CheckContext[TuningOptions]) -> str:
    expected = str(context.options.daemon_memlock)
    found = context.fact(Answer, values.MANAGER_MEMLOCK_READ)
    if found != expected:
        fail(f"the running systemd has DefaultLimitMEMLOCK={found}, not {expected}")
    return f"DefaultLimitMEMLOCK={found}"


def _hugepages(context: CheckContext[TuningOptions]) -> str:
    found = parse_choice(context.output(f"cat {_HUGEPAGES}"))
    if found is None:
        raise Undetermined(f"{_HUGEPAGES} has no selected value")
    if found != context.options.transparent_hugepages:
        fail(f"transparent huge pages are {found}, not {context.options.transparent_hugepages}")
    return f"transparent huge pages: {found}"


def _governor(context: CheckContext[TuningOptions]) -> str:
    expected = values.governor(context.options)
    found = context.output(f"cat {_GOVERNORS}").split()
    if not found:
        raise Undetermined("no CPU reports its governor")
    others = sorted(set(found) - {expected})
    if others:
        count = sum(word != expected for word in found)
        fail(f"{count} of {len(found)} CPUs have governor {', '.join(others)}, not {expected}")
    return f"{expected} on {len(found)} CPUs"


def _tuned(context: CheckContext[TuningOptions]) -> str:
    active = context.output("tuned-adm active")
    if "Current active profile: rackwright" not in active.splitlines():
        fail(active.strip().splitlines()[0] if active.strip() else "tuned reports no active profile")
    result = context.host.run("tuned-adm verify")
    if result.rc != 0:
        fail("tuned-adm verify finds settings changed since the profile was applied")
    return "profile rackwright is active, unchanged since"


def _no_swap(context: CheckContext[TuningOptions]) -> str:
    areas = parse_swaps(context.output("cat /proc/swaps"))
    if areas:
        fail(f"swap is on: {', '.join(areas)}")
    is_masked(context, "swap.target", "swap comes back with a reboot")
    return "no swap area, swap.target masked"


def _journal(context: CheckContext[TuningOptions]) -> str:
    journal = context.options.journal
    printed = context.output(f"journalctl -b -q --no-pager -o json MESSAGE_ID={_JOURNAL_USAGE}")
    reports = parse_json_lines(printed)
    if not reports:
        raise Undetermined("journald has not reported its limits since boot")
    on_disk = [report for report in reports if report.get("JOURNAL_NAME") == "System Journal"]
    if not on_disk:
        fail("journald keeps no journal on disk, only one that is lost with a reboot")
    for field, size in (("MAX_USE", journal.max_use), ("DISK_KEEP_FREE", journal.keep_free)):
        if on_disk[-1].get(field) != str(parse_size(size)):
            fail(f"journald runs with {field} {on_disk[-1].get(field)}, not {parse_size(size)} ({size})")
    return str(on_disk[-1].get("MESSAGE"))


def _journal_rate(context: CheckContext[TuningOptions]) -> str:
    journal = context.options.journal
    found = parse_unit_config(context.output("systemd-analyze cat-config systemd/journald.conf"))
    if not found:
        raise Undetermined("`systemd-analyze cat-config systemd/journald.conf` printed no settings")
    expected = {
        "RateLimitIntervalSec": f"{journal.rate_limit_seconds}s",
        "RateLimitBurst": str(journal.rate_limit_burst),
    }
    for key, value in expected.items():
        if found.get(key) != value:
            fail(f"{key} is {found.get(key, 'not set')}, not {value}")
    return f"{journal.rate_limit_burst} messages per service in {journal.rate_limit_seconds} s"


def _kernel_check(key: str) -> Check:
    """One claim per key, so that each is listed, or out of scope, by its own name."""

    def applies(node: Node, options: TuningOptions) -> bool:
        return key in values.sysctls(node, options)

    function: Callable[[CheckContext[TuningOptions]], str] = partial(_kernel_value, key=key)
    needs = frozenset() if values.is_of_the_network_namespace(key) else frozenset({Capability.KERNEL})
    return Check(f"{key} is as declared", function, needs=needs, applies=applies)


def _site_check(name: str, *, of_the_machine: bool) -> Check:
    def applies(node: Node, options: TuningOptions) -> bool:
        keys = _own_keys(node, options)
        return any(values.is_of_the_network_namespace(key) is not of_the_machine for key in keys)

    function: Callable[[CheckContext[TuningOptions]], str] = partial(
        _site_values, of_the_machine=of_the_machine
    )
    return Check(name, function, applies=applies)


CHECKS: tuple[Check, ...] = (
    *(_kernel_check(key) for key in values.KEYS),
    _site_check("further kernel values of the site are as declared", of_the_machine=True),
    _site_check("further network values of the site are as declared", of_the_machine=False),
    Check("nothing overrides the kernel values at boot", _values_last),
    Check("login sessions have the declared limits", _session_limits),
    Check("systemd sets the declared memlock limit for services", _manager_limit),
    Check("a new service has the declared memlock limit", _service_limits),
    Check("transparent huge pages are as declared", _hugepages, needs=frozenset({Capability.KERNEL})),
    Check(
        "every CPU has the declared frequency governor",
        _governor,
        needs=frozenset({Capability.CPU_FREQUENCY}),
    ),
    Check("the tuned profile is in effect", _tuned, needs=frozenset({Capability.KERNEL})),
    Check("swap is off", _no_swap, needs=frozenset({Capability.SWAP}), applies=values.swap_off),
    Check("journald is running", partial(runs, unit="systemd-journald.service"), settle_seconds=10),
    Check("the journal is kept on disk within its caps", _journal),
    Check("the journal's rate limit is as declared", _journal_rate),
)
