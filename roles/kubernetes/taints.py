"""Shell that keeps the declared taints on node objects. Pure functions.

The API refuses a kubelet that changes taints (NodeRestriction), so control-plane nodes do it as an administrator: each
for itself, and the first one also for all nodes outside the control plane.
"""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import TYPE_CHECKING

from rackwright.kubernetes.commands import AS_DECLARED, KUBECTL
from rackwright.roles.kubernetes import kubeadm, texts

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.kubernetes.options import KubernetesOptions

Taints = Mapping[str, tuple[str, ...]]
"""By the name of their node, e.g. `dedicated=gpu:NoSchedule`."""

_ADMIN = f"{KUBECTL} --request-timeout=10s"
_LINES = """'{range .items[*]}{.metadata.name}{range .spec.taints[*]}{" "}{.key}={.value}:{.effect}{end}{"\\n"}{end}'"""


def kept_by(options: KubernetesOptions, cluster: Cluster, node: Node) -> Taints:
    """What this control-plane node keeps."""
    planes = options.control_planes(cluster)
    nodes = [node, *(one for one in cluster.nodes if node == planes[0] and one not in planes)]
    found = {}
    for one in nodes:
        own = one.options.get("kubernetes")
        if isinstance(own, type(options)):
            found[one.name] = tuple(each.text for each in kubeadm.taints(own, one))
    return {name: taints for name, taints in found.items() if taints}


def missing(kept: Taints) -> str:
    """Prints `NODE lacks TAINT` for each, or `as declared`."""
    return f"""
[ -e {texts.JOINED} ] || {{ echo {quote(AS_DECLARED)}; exit; }}
{_lacking(kept)}
lacking | grep . || echo {quote(AS_DECLARED)}
"""


def write(kept: Taints) -> str:
    """Sets them; other taints stay: an operator may have set them to keep pods off."""
    return f"""
{_lacking(kept)}
for i in $(seq 60); do
    left=$(lacking)
    [ -n "$left" ] || exit 0
    printf '%s\\n' "$left" | while read -r name verb one; do
        [ "$verb" != lacks ] || {_ADMIN} taint node "$name" "$one" --overwrite
    done
    sleep 2
done
printf '%s\\n' "$left" >&2
exit 1
"""


def keep_own(options: KubernetesOptions, cluster: Cluster, node: Node) -> str:
    """For a control-plane node that has just joined: once it is Ready, its taints are there or come back.

    With a network that is installed later it is not Ready yet; what is lost then, the next plan names.
    """
    own = {name: taints for name, taints in kept_by(options, cluster, node).items() if name == node.name}
    if not own:
        return ""
    if options.network != "routes":
        return write(own)
    keys = f"{_ADMIN} get node {quote(node.name)} -o jsonpath='{{.spec.taints[*].key}}'"
    return f"""\
for i in $(seq 30); do
    {keys} | grep -q node.kubernetes.io/not-ready || break
    sleep 2
done
{write(own)}"""


def _lacking(kept: Taints) -> str:
    """A function that prints what is missing. A node that has not joined yet registers with its taints."""
    one = f"--field-selector metadata.name={quote(next(iter(kept)))}" if len(kept) == 1 else ""
    cases = "\n".join(f"        {name}) wanted={quote(' '.join(taints))} ;;" for name, taints in kept.items())
    return f"""\
lacking() {{
    there=$(timeout 15 {_ADMIN} get nodes {one} -o jsonpath={_LINES}) || {{ echo 'the API does not answer'; return; }}
    printf '%s\\n' "$there" | sed 's/=:/:/g' | while read -r name have; do
        case $name in
{cases}
        *) continue ;;
        esac
        for one in $wanted; do
            case " $have " in *" $one "*) ;; *) echo "$name lacks $one" ;; esac
        done
    done
}}"""
