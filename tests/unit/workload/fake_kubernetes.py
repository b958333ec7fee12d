"""A control plane whose kubectl talks to an API server in memory: it parses the real command lines, templates and patches."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field

from rackwright.command import CommandResult
from tests.unit.workload.jsonpath import rendered

REASON, BY = "rackwright.dev/drain-reason", "rackwright.dev/drained-by"
REFUSED = "The connection to the server 10.9.0.10:6443 was refused - did you specify the right host or port?"


@dataclass
class FakeKubeNode:
    """A Node and what runs there. `pods`: further ones, as objects."""

    jobs: list[str] = field(default_factory=list)
    pods: list[dict] = field(default_factory=list)
    unschedulable: bool = False
    owned: bool = False
    """Whether rackwright set `unschedulable` last."""
    annotations: dict[str, str] = field(default_factory=lambda: {"kubeadm.alpha.kubernetes.io/x": "y"})
    labels: dict[str, str] = field(default_factory=lambda: {"rackwright.dev/sku": "test-node"})
    taints: list[dict] = field(default_factory=list)
    down: bool = False

    def item(self, name):
        spec = {"podCIDR": "10.244.1.0/24", **({"taints": self.taints} if self.taints else {})}
        fields = [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}]
        if self.unschedulable:
            spec["unschedulable"] = True
            manager = "rackwright" if self.owned else "kubectl-cordon"
            fields.append({"manager": manager, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}})
        ready = {"type": "Ready", "status": "False" if self.down else "True"}
        ready["reason"] = "KubeletNotReady" if self.down else "KubeletReady"
        pressure = {"type": "MemoryPressure", "status": "False", "reason": "Enough"}
        metadata = {"name": name, "annotations": dict(self.annotations), "labels": dict(self.labels)}
        status = {"conditions": [pressure, ready], "allocatable": {"cpu": "2"}}
        return {"metadata": {**metadata, "managedFields": fields}, "spec": spec, "status": status}

    def patched(self, operations, manager):
        """A JSON patch, whole or not at all; an error's text, or None."""
        item = self.item("x")
        for one in operations:
            *path, last = [part.replace("~1", "/").replace("~0", "~") for part in one["path"].split("/")[1:]]
            place = item
            for part in path:
                place = place[part]
            if one["op"] == "test" and place.get(last) != one["value"]:
                return f"testing path {one['path']} failed"
            if one["op"] == "remove":
                if last not in place:
                    return f"remove operation does not apply: path {one['path']} is missing"
                del place[last]
            if one["op"] == "add":
                place[last] = one["value"]
        unschedulable = item["spec"].get("unschedulable", False)
        self.owned = manager == "rackwright" if unschedulable != self.unschedulable else self.owned
        self.unschedulable, self.annotations = unschedulable, item["metadata"]["annotations"]
        return None


def pod(name, node, *, kind=None, owner="", namespace="ada", phase="Running", **more):
    """A pod as the API server has it."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", **more.pop("metadata", {})}
    if kind is not None:
        metadata["ownerReferences"] = [{"kind": kind, "name": owner or f"{name}-owner", "controller": True}]
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase, **more}}


class FakeKubernetes:
    """After `polls_until_free` looks at the nodes their jobs end, after `silent_after` the API server is gone."""

    def __init__(self, *names, planes=("head1",), version="v1.20.2"):
        self.nodes = {name: FakeKubeNode() for name in names}
        self.planes, self.version = planes, version
        self.polls_until_free = self.silent_after = -1
        self.on_look = lambda: None
        self.silent = False
        self.unreachable: set[str] = set()
        self.steps: dict[str, dict] = {}
        self.reply = ("hello\n", 0)
        self.budget_refuses: set[str] = set()
        self.evicted, self.deleted, self.commands, self.made = [], [], [], []
        self.error: str | None = None
        """What it answers to everything instead."""

    def run(self, node, command, *, stdin=None, timeout):
        assert node in self.planes
        if node in self.unreachable:
            from rackwright.errors import ConnectionFailed

            raise ConnectionFailed(f"{node} is out of reach")
        self.commands.append(command)
        if self.error is not None:
            return CommandResult(command, 1, "", self.error)
        out, err, status = "", "", 0
        for line in re.split(r" && |\n", command):
            number = re.search(r"sed 's/\^/(\d+) /'", line)
            given = re.match(r"echo '(.*?)' \| ", line)
            words = shlex.split(re.split(r" 2>&1 >/dev/null", line[given.end() if given else 0 :])[0])
            if words == ["wait"]:
                continue
            text, printed, status = self._kubectl(words, given[1] if given else stdin)
            if number and printed:
                err, status = f"{err}{number[1]} {printed}\n", 0
                continue
            out, err = out + text, err + (f"{printed}\n" if printed else "")
            if status:
                break
        return CommandResult(command, status, out, err)

    def _kubectl(self, words, stdin):
        assert words[:2] == ["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"], words
        words = [word for word in words[2:] if not word.startswith("--request-timeout=")]
        if self.silent:
            return "", REFUSED, 1
        answer = getattr(self, f"_{words[0]}")(words[1:], stdin)
        return (answer, "", 0) if isinstance(answer, str) else answer

    def _get(self, words, stdin):
        if words == ["--raw=/version"]:
            return json.dumps({"major": "1", "gitVersion": self.version})
        asked = dict(word.removeprefix("--").partition("=")[::2] for word in words if "=" in word)
        template = next(
            (word.removeprefix("jsonpath=") for word in words if word.startswith("jsonpath=")), None
        )
        if words[0] == "nodes":
            self._clock()
            if self.silent:
                return "", REFUSED, 1
            one = asked.get("field-selector", "").removeprefix("metadata.name=")
            items = [node.item(name) for name, node in self.nodes.items() if one in ("", name)]
        elif "-l" in words:
            step = words[words.index("-l") + 1].partition("=")[2]
            items = self.steps.get(step, {}).get("pods", [])
        else:
            where = asked.get("field-selector", "")
            items = [one for name in self.nodes for one in self._pods(name) if _selected(one, where)]
            if (job := next((word for word in words if word.startswith("-ljob-name=")), None)) is not None:
                items = [one for one in items if _owner(one) == job.partition("=")[2]]
            if "-n" in words:
                items = [one for one in items if one["metadata"]["namespace"] == words[words.index("-n") + 1]]
        found = {"kind": "List", "items": items}
        return json.dumps(found) if template is None else rendered(template, found)

    def _pods(self, name):
        node = self.nodes[name]
        return [*(pod(job, name, kind="Job", owner=job) for job in node.jobs), *node.pods]

    def _clock(self):
        self.on_look()
        if self.polls_until_free == 0:
            for node in self.nodes.values():
                node.jobs.clear()
        self.polls_until_free -= 1
        self.silent = self.silent or self.silent_after == 0
        self.silent_after -= 1

    def _patch(self, words, stdin):
        assert words[0] == "node"
        assert "--type=json" in words
        names = [word for word in words[1 : words.index("-p")] if not word.startswith("--")]
        printed = [
            self._patched(name, json.loads(words[-1]), "--field-manager=rackwright" in words)
            for name in names
        ]
        printed = [text for text in printed if text is not None]
        return "", "\n".join(printed), int(bool(printed))

    def _patched(self, name, operations, ours):
        if name not in self.nodes:
            return f'Error from server (NotFound): nodes "{name}" not found'
        printed = self.nodes[name].patched(operations, "rackwright" if ours else "kubectl")
        return f"The request is invalid: {printed}" if printed is not None else None

    def _delete(self, words, stdin):
        if "-l" in words:
            self.steps.pop(words[words.index("-l") + 1].partition("=")[2], None)
            return ""
        if words[0] == "node":
            assert words[1] == "--ignore-not-found"
            for name in words[2:]:
                del self.nodes[name]
            return ""
        assert {"--wait=false", "--ignore-not-found"} <= set(words)
        namespace, names = words[2], [word for word in words[3:] if not word.startswith("-")]
        assert namespace == "-n" or words[1] == "-n"
        self.deleted += names
        for node in self.nodes.values():
            node.jobs = [job for job in node.jobs if job not in names]
            node.pods = [one for one in node.pods if one["metadata"]["name"] not in names]
        return ""

    def _apply(self, words, stdin):
        self.made.append(json.loads(stdin))
        return ""

    def _create(self, words, stdin):
        given = json.loads(stdin)
        raw = next((word for word in words if word.startswith("--raw=")), None)
        if raw is not None:
            return self._evict(raw, given)
        self.made += given["items"]
        name = given["items"][0]["metadata"]["name"]
        self.steps[name] = {"items": given["items"], "pods": list(_started(name, given["items"]))}
        return ""

    def _evict(self, raw, given):
        policy = "policy/v1" if self.version.startswith("v1.3") else "policy/v1beta1"
        assert (given["kind"], given["apiVersion"]) == ("Eviction", policy)
        name = given["metadata"]["name"]
        assert raw == f"--raw=/api/v1/namespaces/{given['metadata']['namespace']}/pods/{name}/eviction"
        if name in self.budget_refuses:
            why = "Cannot evict pod as it would violate the pod's disruption budget."
            return "", f"Error from server (TooManyRequests): {why}", 1
        self.evicted.append(name)
        for node in self.nodes.values():
            node.pods = [one for one in node.pods if one["metadata"]["name"] != name]
        return "{}"

    def _logs(self, words, stdin):
        if isinstance(self.reply, BaseException):
            raise self.reply
        text, status = self.reply
        return text if status is None else f"{text}# mpirun exit status {status}\n"


def _started(name, items):
    for item in items[1:]:
        spec = item["spec"]
        if item["kind"] == "Job":
            for number in range(spec["completions"]):
                meta = {"annotations": {"batch.kubernetes.io/job-completion-index": str(number)}}
                yield pod(f"{name}-{number}-x", f"w{number + 1}", namespace="rackwright-jobs", metadata=meta)
        else:
            meta = {"annotations": item["metadata"]["annotations"]}
            yield pod(item["metadata"]["name"], "w1", namespace="rackwright-jobs", metadata=meta)


def _owner(one):
    return one["metadata"].get("ownerReferences", [{"name": None}])[0]["name"]


def _selected(one, where):
    """As the API server reads a field selector."""
    values = {
        "status.phase": one["status"]["phase"],
        "spec.nodeName": one["spec"].get("nodeName", ""),
        "metadata.name": one["metadata"]["name"],
    }
    for word in filter(None, where.split(",")):
        key, unequal, value = re.fullmatch(r"([A-Za-z.]+)(!?)==?(.*)", word).groups()
        if (values[key] == value) is bool(unequal):
            return False
    return True
