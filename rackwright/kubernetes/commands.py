"""Shell commands that compare declared objects with those of a cluster, and apply them, by kubectl."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from shlex import quote

from rackwright.kubernetes.objects import FOLDER, Object, identity, labelled, yaml_text

AS_DECLARED = "as declared"
KUBECTL = "kubectl --kubeconfig /etc/kubernetes/admin.conf"
_SERVER_SIDE = "--server-side --force-conflicts --field-manager=rackwright"
_DEFINITION = "CustomResourceDefinition"


_DIFFERENT = r"""
/^diff -u -N / { name = $NF; sub(".*/", "", name); skip = 3 }
skip > 0 { skip--; next }
/^[-+]/ && !/^[-+]    time: "[0-9TZ:-]+"$/ { print name " differs" }
"""
"""Names in kubectl's output. Servers before 1.21 show who manages which field, with the time of the comparison itself."""


def path_of(role: str) -> str:
    """The file with what a role declares."""
    return f"{FOLDER}/{role}.yaml"


def document(role: str, objects: Sequence[Object]) -> str:
    """Its text."""
    return yaml_text(labelled(role, objects))


def compare(role: str, objects: Sequence[Object]) -> str:
    """Prints `as declared`, or a line for each object that differs; nothing where the API server does not answer.

    The server compares, in a dry run: what it fills in by itself does not count.
    """
    path = quote(path_of(role))
    digest = hashlib.sha256(document(role, objects).encode()).hexdigest()
    return f"""
[ "$(sha256sum < {path} | cut -c1-64)" = {digest} ] || {{ echo 'other objects were applied last'; exit; }}
{KUBECTL} get --raw=/readyz >/dev/null || exit 1
found=$(LC_ALL=C {KUBECTL} diff {_SERVER_SIDE} -f {path} 2>&1) && same=0 || same=$?
if [ $same -gt 1 ]; then
    printf '%s\\n' "$found" | grep -m1 -E 'no matches for kind|namespaces .* not found' | cut -c1-200
    exit
fi
[ $same -eq 0 ] || printf '%s\\n' "$found" | grep -q '^diff -u -N ' || exit 1
{{
    printf '%s\\n' "$found" | awk {quote(_DIFFERENT)}
    {_leftovers(role, objects)} | sed 's,$, is not declared any more,'
}} | sort -u | head -n 50 | grep . || echo '{AS_DECLARED}'
"""


def apply(role: str, objects: Sequence[Object]) -> str:
    """Applies the role's file, and deletes what the role applied earlier and does not declare any more."""
    path = quote(path_of(role))
    names = "".join(f"{line}\n" for line in _lines(objects))
    definitions = [str(item["metadata"]["name"]) for item in objects if item["kind"] == _DEFINITION]
    first = ""
    if definitions:  # objects of new kinds are refused until their definitions are established
        each = " ".join(quote(f"crd/{name}") for name in definitions)
        first = f"""
{KUBECTL} apply {_SERVER_SIDE} -f {path} || :
{KUBECTL} wait --for=condition=Established --timeout=60s {each}
"""
    return f"""
set -e
{first}{KUBECTL} apply {_SERVER_SIDE} -f {path}
{_leftovers(role, objects)} | while read -r kind name namespace; do
    {KUBECTL} delete "$kind" "$name" ${{namespace:+--namespace "$namespace"}} --ignore-not-found --wait=false
done
printf %s {quote(names)} > {quote(_applied(role))}
"""


def _leftovers(role: str, objects: Sequence[Object]) -> str:
    """Prints `kind name namespace` of what was applied earlier and is not declared any more; no namespaces.

    With a namespace everything in it would go, and in those of accounts that is the users' data: an operator deletes them.
    """
    known = quote("".join(f"{line}\n" for line in _lines(objects)))
    applied = quote(_applied(role))
    return f"{{ [ ! -e {applied} ] || printf %s {known} | grep -vxFf - {applied} | grep -v '^namespace ' || :; }}"


def _applied(role: str) -> str:
    return f"{FOLDER}/{role}.applied"


def _lines(objects: Sequence[Object]) -> list[str]:
    return [f"{one.kind} {one.name} {one.namespace}".rstrip() for one in sorted(map(identity, objects))]
