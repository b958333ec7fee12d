"""Modules: what modprobe reads, and the shell that looks at the running kernel. Pure."""

from __future__ import annotations

import re

from rackwright.render import render
from rackwright.roles.kernel.options import Modules

_TRUE, _FALSE = {"1", "y", "yes", "on", "true"}, {"0", "n", "no", "off", "false"}


def canonical(module: str) -> str:
    """A module as the running kernel spells it."""
    return module.replace("-", "_")


def modprobe(modules: Modules) -> str:
    """modprobe's file: options, and what no alias and no command may load."""
    return render("kernel/modprobe.conf.j2", modules=modules)


def loaded_read(module: str) -> str:
    """Shell that prints `loaded` where a module is, or is part of the kernel."""
    name = canonical(module)
    return f"[ -d /sys/module/{name} ] || {_built_in(name)} && echo loaded"


def kept_out_read(module: str) -> str:
    """Shell that prints whether a module is in the running kernel."""
    return f"[ -d /sys/module/{canonical(module)} ] && echo loaded || echo 'not loaded'"


def parameters_read(module: str, parameters: dict[str, str]) -> str:
    """Shell that prints parameters of a loaded module that differ, each `name=value`; `as declared` if none does.

    A module that is not loaded gets them when it is, and one that hides a parameter cannot be compared.
    """
    folder = f"/sys/module/{canonical(module)}/parameters"
    lines = [
        f"[ ! -r {folder}/{name} ] || {{ there=$(cat {folder}/{name}); "
        f'case "$there" in {_alternatives(value)}) ;; *) differ="$differ {name}=$there" ;; esac; }}'
        for name, value in parameters.items()
    ]
    return "\n".join(["differ=", *lines, 'echo "${differ:-as declared}"'])


def same(declared: str, there: str) -> bool:
    """Whether the kernel's value is the declared one; it prints Y and N for booleans."""
    return there == declared or there in _spellings(declared)


def _spellings(value: str) -> tuple[str, ...]:
    """Ways in which the kernel prints a value."""
    if value.lower() in _TRUE:
        return (value, "Y", "1")
    if value.lower() in _FALSE:
        return (value, "N", "0")
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", value):
        return (value, str(int(value, 16)))
    return (value,)


def _alternatives(value: str) -> str:
    return " | ".join(f"'{one}'" for one in dict.fromkeys(_spellings(value)))


def _built_in(name: str) -> str:
    pattern = re.sub("_", "[-_]", name)
    return f"grep -qs '/{pattern}\\.ko' \"/lib/modules/$(uname -r)/modules.builtin\""
