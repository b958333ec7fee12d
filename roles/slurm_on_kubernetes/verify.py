"""What the slurm_on_kubernetes role claims, asked on the primary head through the API."""

from __future__ import annotations

import hashlib
import re

from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, each, fail
from rackwright.kubernetes.commands import AS_DECLARED, KUBECTL, compare
from rackwright.model.cluster import Node
from rackwright.model.ranges import fold
from rackwright.roles.slurm_on_kubernetes import declared, reading, slurm_checks, texts
from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions
from rackwright.roles.slurm_on_kubernetes.places import (
    CONTROLLER,
    LOGIN,
    ROLE,
    SLURMD,
    inside,
    slurmd_nodes,
)
from rackwright.roles.slurm_on_kubernetes.reading import Pod
from rackwright.roles.slurm_on_kubernetes.slurm_checks import first
from rackwright.secrets.store import store_of
from rackwright.workload.slurm.pods import ETC

Context = CheckContext[SlurmOnKubernetesOptions]
_KEY = "/etc/munge/munge.key"
_AGAIN = "%Y-%m-%dT%H:%M:%SZ"


def _objects(context: Context) -> str:
    objects = declared.objects(context.options, context.cluster)
    answer = context.output("sh -c %s", compare(ROLE, objects)).strip()
    if not answer:
        raise Undetermined("the API server does not answer")
    if answer != AS_DECLARED:
        fail(first(answer.splitlines()))
    return f"{len(objects)} objects as declared"


def _pods(context: Context) -> tuple[Pod, ...]:
    namespace, selector = context.options.namespace, "app.kubernetes.io/name=slurm"
    document = context.json(f"{KUBECTL} get pods --namespace {namespace} --selector {selector} -o json")
    return reading.pods(document)


def _running(context: Context) -> str:
    found = _pods(context)
    wrong = [
        f"{pod.name} is not ready{f' ({pod.waits})' if pod.waits else ''}" for pod in found if not pod.ready
    ]
    there = [pod.daemon for pod in found]
    wanted = {name.partition("/")[2]: 1 for name in texts.controllers(context.options, context.cluster)}
    wrong += [
        f"{there.count(daemon)} pods of {daemon}, not {count}"
        for daemon, count in wanted.items()
        if there.count(daemon) != count
    ]
    nodes = [pod.node for pod in found if pod.daemon == SLURMD]
    wrong += [
        f"{node.name} has no pod of slurmd"
        for node in slurmd_nodes(context.cluster)
        if node.name not in nodes
    ]
    known = {node.name for node in slurmd_nodes(context.cluster)}
    wrong += [f"{name} has a pod of slurmd that is not declared" for name in sorted(set(nodes) - known)]
    if wrong:
        fail(first(wrong))
    return f"{len(found)} pods ready, slurmd on {fold(nodes)}"


def _no_restarts(context: Context) -> str:
    """Of the last hour; earlier ones are a warning until the pod is replaced."""
    found = _pods(context)
    if not found:
        raise Undetermined("no pod of Slurm is there")
    since = context.output("date -u -d '1 hour ago' +%s", _AGAIN).strip()
    lately: list[str] = []
    earlier: list[str] = []
    for pod in found:
        for name, one in pod.containers.items():
            if one.restarts:
                why = f" ({pod.waits})" if pod.waits else ""
                sentence = f"{name} of {pod.name} was started again {one.restarts} times{why}"
                (lately if one.started >= since or not one.started else earlier).append(sentence)
    if lately:
        fail(first(lately))
    if earlier:
        raise Warned(f"more than an hour ago: {first(earlier)}")
    return f"no container of {len(found)} pods was started again"


def _templates(context: Context) -> str:
    wrong = []
    for pod in _pods(context):
        if pod.template != texts.template(context.options, context.cluster, pod.daemon):
            wrong.append(f"{pod.name} has an earlier template")
    if wrong:
        fail(first(wrong))
    return "every pod has the declared image and scripts, and the files that it reads when it starts"


def _files(context: Context) -> str:
    """In each pod that mounts them."""
    files = texts.config(context.options, context.cluster)
    wanted = {f"{ETC}/{name}": hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    there = [pod for pod in _pods(context) if pod.daemon in (CONTROLLER, SLURMD, LOGIN)]
    if not there:
        raise Undetermined("no pod that has the files is there")

    def differs(pod: Pod) -> list[str]:
        words = inside(context.options, pod.name, pod.daemon)
        result = context.host.run(f"{words} sha256sum " + " ".join(["%s"] * len(wanted)), *wanted)
        found = reading.digests(result.stdout)
        if not found:
            raise Undetermined(f"{pod.name}: `sha256sum` printed nothing: {result.stderr.strip()[:120]}")
        missing = [f"{path} is missing in {pod.name}" for path in wanted if path not in found]
        return missing + [
            f"{path} in {pod.name} is another one" for path in found if found[path] != wanted.get(path)
        ]

    if wrong := [sentence for sentences in each(differs, there) for sentence in sentences]:
        fail(first(wrong))
    return f"{len(wanted)} files in {len(there)} pods are as declared"


def _loaded(context: Context) -> str:
    words = inside(context.options, f"{CONTROLLER}-0", CONTROLLER)
    found = context.output(f"{words} cat /run/rackwright/loaded").strip()
    if not re.fullmatch(r"[0-9a-f]{64}", found):
        raise Undetermined("slurmctld's pod does not name the files that it has loaded")
    if found != texts.digest(context.options, context.cluster):
        fail("slurmctld has not loaded the declared files")
    return "slurmctld has loaded the declared files"


def _munge_key(context: Context) -> str:
    """Digests are compared here; neither they nor the key are in the report."""
    value = declared.decoded("munge_key", store_of(context.cluster).get("munge_key").reveal())
    wanted = hashlib.sha256(value).hexdigest()
    there = [pod for pod in _pods(context) if "munged" in pod.containers]
    if not there:
        raise Undetermined("no pod with munged is there")

    def found(pod: Pod) -> str | None:
        printed = context.output(f"{inside(context.options, pod.name, 'munged')} sha256sum {_KEY}")
        return reading.digests(printed).get(_KEY)

    answers = dict(zip((pod.name for pod in there), each(found, there), strict=True))
    if silent := [name for name, digest in answers.items() if digest is None]:
        raise Undetermined(f"{silent[0]} does not print the digest of its munge key")
    if wrong := [name for name, digest in answers.items() if digest != wanted]:
        fail(f"another munge key than the declared one in {', '.join(wrong)}")
    return f"{len(there)} pods have the declared munge key"


def _with_pods(node: Node, options: SlurmOnKubernetesOptions) -> bool:
    return node.primary and options.flavour == "pods"


def _on_primary(node: Node, options: SlurmOnKubernetesOptions) -> bool:
    return node.primary


CHECKS = (
    Check(
        "Slurm's objects in Kubernetes are as declared",
        _objects,
        scope="cluster",
        timeout_seconds=120,
        applies=_on_primary,
    ),
    Check("every pod of Slurm is ready", _running, scope="cluster", settle_seconds=60, applies=_with_pods),
    Check("no container of Slurm was started again", _no_restarts, scope="cluster", applies=_with_pods),
    Check("pods of Slurm have the declared template", _templates, scope="cluster", applies=_with_pods),
    Check(
        "Slurm's files in the pods are as declared",
        _files,
        scope="cluster",
        settle_seconds=90,
        timeout_seconds=240,
        applies=_with_pods,
    ),
    Check("slurmctld's pod has loaded the declared files", _loaded, scope="cluster", applies=_with_pods),
    Check(
        "the munge key is the declared one in every pod",
        _munge_key,
        scope="cluster",
        timeout_seconds=240,
        applies=_with_pods,
        live=True,
    ),
    Check(
        "slurmctld answers the login pod",
        slurm_checks.answers,
        scope="cluster",
        settle_seconds=20,
        applies=_with_pods,
    ),
    Check(
        "every node with slurmd in a pod is ready with its declared hardware",
        slurm_checks.nodes,
        scope="cluster",
        settle_seconds=60,
        applies=_with_pods,
    ),
    Check(
        "accounts, users and QOS in slurmdbd's pod are as declared",
        slurm_checks.records,
        scope="cluster",
        timeout_seconds=120,
        applies=_with_pods,
    ),
    Check(
        "a job across the pods runs and is accounted for",
        slurm_checks.job,
        scope="cluster",
        settle_seconds=60,
        timeout_seconds=240,
        applies=_with_pods,
        live=True,
    ),
)
