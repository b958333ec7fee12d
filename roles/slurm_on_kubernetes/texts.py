"""Files and scripts of the pods, whole. Pure: what is applied is what is verified."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from rackwright.kubernetes.commands import KUBECTL
from rackwright.model.cluster import Cluster
from rackwright.model.interfaces import DeclaresUsers
from rackwright.model.logins import DeclaresLogins
from rackwright.render import render
from rackwright.roles.slurm_on_kubernetes.places import (
    ACCOUNTING,
    CONTROLLER,
    DATABASE,
    LOGIN,
    own_database,
    places,
    slurm_of,
    slurmd_nodes,
)
from rackwright.workload.slurm.pods import ETC

if TYPE_CHECKING:
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions

LABEL = "rackwright.dev/slurm"
"""Which daemon a pod runs."""
TEMPLATE = "rackwright.dev/template"
"""Annotation of pods: digest of what only a new pod takes over."""
AS_DECLARED = "as declared"
READY = "ready"
NEW_POD = "rackwright: new pod"
"""Why nodes are drained in Slurm while their pods of slurmd are replaced."""
SETTLE_SECONDS = 900
"""As long as images may take to be pulled, and the kubelet to bring a changed ConfigMap into pods."""
_NEW_PODS = ("slurm-restart.conf", "job_container.conf")
"""Files that daemons read only when they start."""
_DATABASE_FILES = ("slurmdbd.conf",)
_USERS = "/var/lib/extrausers/passwd"
_LOCKED = "*:19000:0:99999:7:::"


def config(options: SlurmOnKubernetesOptions, cluster: Cluster) -> dict[str, str]:
    """Files of /etc/slurm by name."""
    return dict(slurm_of(cluster).pod_files(cluster, places(options, cluster)))


def reloaded(options: SlurmOnKubernetesOptions, cluster: Cluster) -> tuple[str, ...]:
    """Paths of the files that `scontrol reconfigure` takes over, in the order of the digest.

    Users are among them: slurmctld looks up the uid of an account's user when it loads the record, and the pod
    has a new user's uid only later.
    """
    left_out = (*_NEW_PODS, *_DATABASE_FILES)
    names = (name for name in sorted(config(options, cluster)) if name not in left_out)
    return (*(f"{ETC}/{name}" for name in names), _USERS)


def digest(options: SlurmOnKubernetesOptions, cluster: Cluster) -> str:
    """What start.sh computes of these files."""
    files = config(options, cluster) | {"passwd": users(cluster)["passwd"]}
    text = "".join(files[path.rpartition("/")[2]] for path in reloaded(options, cluster))
    return hashlib.sha256(text.encode()).hexdigest()


def template(options: SlurmOnKubernetesOptions, cluster: Cluster, daemon: str) -> str:
    """Digest of what a daemon's pod takes over only when it is a new one."""
    files, own = config(options, cluster), scripts(options, cluster)
    names = _DATABASE_FILES if daemon == ACCOUNTING else () if daemon == DATABASE else _NEW_PODS
    parts = [options.reference(cluster), own["start.sh"], *(files.get(name, "") for name in names)]
    parts += [own["sshd_config"]] if daemon == LOGIN else []
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def scripts(options: SlurmOnKubernetesOptions, cluster: Cluster) -> dict[str, str]:
    """The start script of all containers, and sshd's settings."""
    slurm = slurm_of(cluster)
    _, port, database, user = slurm.storage
    known = slurm.pod_records(cluster, places(options, cluster))
    start = render(
        "slurm_on_kubernetes/start.sh.j2",
        cluster=cluster,
        slurm=slurm,
        reloaded=reloaded(options, cluster),
        qos=sorted({"normal", *known.qos}),
        database=database,
        database_user=user,
        database_port=port,
        buffer_pool_mib=options.volumes.buffer_pool_mib,
        archive=archive(options, cluster),
        job_tmp=job_tmp(options, cluster),
        controller_address=places(options, cluster).controller_address,
    )
    sshd = render("slurm_on_kubernetes/sshd_config.j2", cluster=cluster, port=options.login.port)
    return {"start.sh": start, "sshd_config": sshd}


def archive(options: SlurmOnKubernetesOptions, cluster: Cluster) -> str | None:
    """Where slurmdbd writes purged records."""
    return _setting(config(options, cluster)["slurmdbd.conf"], "ArchiveDir")


def job_tmp(options: SlurmOnKubernetesOptions, cluster: Cluster) -> str | None:
    """Where /tmp of jobs lies."""
    return _setting(config(options, cluster).get("job_container.conf", ""), "BasePath")


def _setting(text: str, key: str) -> str | None:
    values = (line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}="))
    return next(values, None)


def users(cluster: Cluster) -> dict[str, str]:
    """Declared users for libnss-extrausers, each with a group of the same name and number, and their public keys."""
    declared, logins = cluster.primary.offers(DeclaresUsers), cluster.primary.offers(DeclaresLogins)
    accounts = declared.accounts if declared is not None else ()
    homes = [declared.home_folder(cluster, cluster.primary, one) for one in accounts if declared is not None]
    found = {
        "passwd": "".join(
            f"{one.name}:x:{one.uid}:{one.uid}::{home}:/bin/bash\n"
            for one, home in zip(accounts, homes, strict=True)
        ),
        "group": "".join(f"{one.name}:x:{one.uid}:\n" for one in accounts),
        "shadow": "".join(f"{one.name}:{_LOCKED}\n" for one in accounts),
    }
    keys: Mapping[str, tuple[str, ...]] = logins.login_keys if logins is not None else {}
    for one in accounts:
        if keys.get(one.name):
            found[f"keys.{one.name}"] = "".join(f"{key}\n" for key in keys[one.name])
    return found


def controllers(options: SlurmOnKubernetesOptions, cluster: Cluster) -> tuple[str, ...]:
    """What `kubectl rollout` knows, in the order in which they wait for each other."""
    found = [f"statefulset/{DATABASE}"] if own_database(cluster) else []
    found += [f"statefulset/{ACCOUNTING}", f"statefulset/{CONTROLLER}"]
    return (*found, *([f"deployment/{LOGIN}"] if options.login.enabled else []))


def settle(options: SlurmOnKubernetesOptions, cluster: Cluster, mode: Literal["read", "write"]) -> str:
    """Shell that compares the pods with the declaration, or waits for them, replaces them and reconfigures."""
    return render(
        "slurm_on_kubernetes/settle.sh.j2",
        mode=mode,
        kubectl=KUBECTL,
        namespace=options.namespace,
        controllers=controllers(options, cluster),
        digest=digest(options, cluster),
        pod_template=template(options, cluster, "slurmd"),
        nodes=[node.name for node in slurmd_nodes(cluster)],
        login=options.login.enabled,
        label=LABEL,
        annotation=TEMPLATE,
        reloaded=reloaded(options, cluster),
        seconds=SETTLE_SECONDS * cluster.ssh.time_factor,
        as_declared=AS_DECLARED,
        reason=NEW_POD,
    )
