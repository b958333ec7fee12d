"""A declared MIG layout as text: what nvidia-smi must show, and how to create it. Pure."""

from __future__ import annotations

from rackwright.catalog.mig import placed, profiles_of
from rackwright.model.cluster import Node

# One line for each GPU, `0: Enabled 1g.10gb 1g.10gb`: its MIG mode and its instances, sorted.
READ = """\
{ LC_ALL=C; export LC_ALL
nvidia-smi --query-gpu=index,mig.mode.current --format=csv,noheader; nvidia-smi -L; } | awk '
/^[0-9]+, / { sub(/,/, "", $1); mode[$1] = $2; if ($1 + 1 > count) count = $1 + 1 }
/^GPU [0-9]+:/ { gpu = $2; sub(/:/, "", gpu) }
/^ +MIG / { have[gpu] = have[gpu] " " $2 }
END { for (gpu = 0; gpu < count; gpu++) {
  last = split(have[gpu], word, " ")
  for (a = 2; a <= last; a++) for (b = a; b > 1 && word[b - 1] > word[b]; b--) {
    other = word[b]; word[b] = word[b - 1]; word[b - 1] = other }
  line = gpu ": " mode[gpu]
  for (a = 1; a <= last; a++) line = line " " word[a]
  print line } }'"""

# All GPUs together, `8 GPUs: Enabled 1g.10gb 1g.10gb`: one line if all are alike.
SUMMARY = READ + """ | sed 's/^[0-9]*: //' | sort | uniq -c | awk '{ $1 = $1 " GPUs:"; print }'"""


def instances(node: Node) -> tuple[str, ...]:
    """Profiles of one GPU, one entry for each instance, in byte order."""
    return tuple(sorted(name for name, count in node.mig.items() for _ in range(count)))


def wanted(node: Node) -> str:
    """What READ prints on a node whose GPUs are as declared."""
    return "\n".join(f"{index}: {_each(node)}" for index in range(_count(node)))


def wanted_summary(node: Node) -> str:
    """What SUMMARY prints on a node whose GPUs are as declared."""
    return f"{_count(node)} GPUs: {_each(node)}"


def _each(node: Node) -> str:
    return " ".join(("Enabled", *instances(node)) if node.mig else ("Disabled",))


def _count(node: Node) -> int:
    return node.sku.gpus.count if node.sku.gpus is not None else 0


def creation(node: Node) -> str:
    """The argument of `nvidia-smi mig -cgi`: each profile with the memory slice at which it starts.

    The explicit starts keep the driver from placing an instance where it leaves no room for another one.
    """
    row = profiles_of(node.sku.gpus)
    places = placed(node.mig, row) if row is not None else None
    return ",".join(f"{name}:{start}" for name, start in places or ())
