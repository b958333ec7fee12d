"""Secrets of the Kubernetes API: from the secrets store through kubectl's stdin, compared by digest."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Generator, Mapping
from shlex import quote

import yaml
from pyinfra.api.command import StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.facts.settings import Answer
from rackwright.kubernetes.commands import KUBECTL
from rackwright.kubernetes.objects import MANAGED_BY, ROLE
from rackwright.plan.changes import MASK, Change, record

# kubectl's own dry run would print the values, and client-side apply keep a copy of them in an annotation.
_WRITE = """\
set -e
manifest=$(cat)
{kubectl} get namespace {namespace} -o name >/dev/null 2>&1 || {kubectl} create namespace {namespace} >/dev/null
printf '%s\\n' "$manifest" | {kubectl} apply --server-side --force-conflicts --field-manager=rackwright -f - >/dev/null
[ "$({kubectl} get secret {name} --namespace {namespace} -o go-template='{{{{len .data}}}}')" = {count} ] || {{
    echo 'secret {name} in {namespace} has keys that another manager added: remove it and apply again' >&2; exit 1
}}
"""


def digest_of(data: Mapping[str, bytes]) -> str:
    """Digest of a secret's keys and values, as `read_command` prints it."""
    lines = sorted(f"{key} {base64.b64encode(value).decode()}" for key, value in data.items())
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def read_command(namespace: str, name: str) -> str:
    """Prints the digest of a secret's data, which does not leave the node; `absent` where it is not there.

    Nothing where the API server does not answer.
    """
    template = '{{range $key, $value := .data}}{{$key}} {{$value}}{{"\\n"}}{{end}}'
    got = (
        f"{KUBECTL} get secret {quote(name)} --namespace {quote(namespace)} -o go-template={quote(template)}"
    )
    return (
        f"{KUBECTL} get --raw=/readyz >/dev/null 2>&1 || exit 0; "
        f"if found=$({got} 2>/dev/null); then printf '%s\\n' \"$found\" | grep . | LC_ALL=C sort | sha256sum | cut -c1-64; "
        "else echo absent; fi"
    )


@operation()
def kubernetes_secret(
    role: str, namespace: str, secret: str, data: Mapping[str, bytes], kind: str = "Opaque"
) -> Generator[StringCommand, None, None]:
    """A Secret with exactly these values, which are in no argument, plan, log or file of the node.

    + role: whose it is, for its labels
    + data: values by key; each is compared as a whole by a digest
    + kind: its `type`, e.g. kubernetes.io/ssh-auth
    """
    read, digest = read_command(namespace, secret), digest_of(data)
    there: str | None = host.get_fact(Answer, read=read)
    if there == digest:
        host.noop(f"secret {secret} in {namespace} is as declared")
        return
    before = None if there in (None, "", "absent") else f"content {MASK}"
    after = f"{', '.join(sorted(data))}: content {MASK}"
    record(Change("setting", f"secret {secret} in {namespace}", before, after))
    stdin = manifest(role, namespace, secret, data, kind)
    yield StringCommand(write_command(namespace, secret, len(data)), _stdin=stdin)


def write_command(namespace: str, secret: str, count: int) -> str:
    """Shell that applies the manifest on its stdin, and fails where the secret then has other keys besides."""
    return _WRITE.format(kubectl=KUBECTL, namespace=quote(namespace), name=quote(secret), count=count)


def manifest(role: str, namespace: str, secret: str, data: Mapping[str, bytes], kind: str) -> str:
    """The Secret as YAML, with its values."""
    item = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret,
            "namespace": namespace,
            "labels": {MANAGED_BY: "rackwright", ROLE: role},
        },
        "type": kind,
        "data": {key: base64.b64encode(value).decode() for key, value in sorted(data.items())},
    }
    return yaml.safe_dump(item, sort_keys=False, width=1_000_000)
