"""The files of the ray role. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Callable

from rackwright.model.cluster import Cluster, Node
from rackwright.model.services import IssuesCertificates
from rackwright.render import render
from rackwright.roles.ray import places, sizes
from rackwright.roles.ray.options import RayOptions

HEAD_SETTINGS = f"{places.ETC}/head.env"
TMPFILES = "/etc/tmpfiles.d/rackwright-ray.conf"
_MIB = 1024**2


def start_command(cluster: Cluster, node: Node, options: RayOptions) -> tuple[str, ...]:
    """`ray start` with the declared resources."""
    ports = options.ports
    head = options.is_head(node)
    role = (
        (
            "--head",
            f"--port={ports.gcs}",
            f"--ray-client-server-port={ports.client}",
            "--dashboard-host=127.0.0.1",
            f"--dashboard-port={ports.dashboard}",
        )
        if head
        else (f"--address={options.address(cluster)}",)
    )
    custom = sizes.custom(node, options)
    labels = ",".join(f"{name}={value}" for name, value in sizes.labels(node).items())
    return (
        f"{places.ENVIRONMENTS}/current/bin/ray",
        "start",
        *role,
        "--block",
        "--disable-usage-stats",
        f"--node-name={node.name}",
        f"--node-ip-address={cluster.management_address(node)}",
        f"--num-cpus={sizes.cpus(node, options)}",
        f"--num-gpus={sizes.gpus(node)}",
        f"--memory={sizes.memory_mib(node, options) * _MIB}",
        f"--object-store-memory={sizes.object_store_mib(node, options) * _MIB}",
        *((f"--resources={json.dumps(custom, separators=(',', ':'))}",) if custom else ()),
        f"--labels={labels}",
        f"--node-manager-port={ports.node_manager}",
        f"--object-manager-port={ports.object_manager}",
        f"--dashboard-agent-grpc-port={ports.agent_grpc}",
        f"--dashboard-agent-listen-port={ports.agent_http}",
        f"--runtime-env-agent-port={ports.runtime_env}",
        f"--metrics-export-port={ports.metrics}",
        f"--min-worker-port={ports.first_worker}",
        f"--max-worker-port={ports.last_worker}",
        f"--temp-dir={options.state}/tmp",
        f"--object-spilling-directory={options.state}/spill",
    )


def _exec_line(command: tuple[str, ...]) -> str:
    """For ExecStart=: each word quoted, `%` and `$` doubled (systemd.service(5), "Command lines")."""
    escaped = (word.replace("\\", "\\\\").replace('"', '\\"') for word in command)
    return " ".join(f'"{word}"' for word in escaped).replace("%", "%%").replace("$", "$$")


def unit_text(cluster: Cluster, node: Node, options: RayOptions) -> str:
    """The unit of Ray on a node."""
    command = _exec_line(start_command(cluster, node, options))
    if options.is_head(node):
        return render(
            "ray/head.service.j2",
            redis_unit=places.REDIS_UNIT,
            user=places.USER,
            settings=places.SETTINGS,
            head_settings=HEAD_SETTINGS,
            state=options.state,
            command=command,
            with_ray=places.WITH_RAY,
        )
    return render(
        "ray/worker.service.j2",
        user=places.USER,
        settings=places.SETTINGS,
        state=options.state,
        supervise=places.SUPERVISE,
        command=command,
        head_outage_seconds=options.head_outage_seconds,
    )


def files(cluster: Cluster, node: Node, options: RayOptions) -> dict[str, str]:
    """Text by path of what everyone may read, owned by root; the programs are beside it."""
    ca = node.offers(IssuesCertificates)
    certificate = next(iter(options.certificates(cluster, node)), None)
    if ca is None or certificate is None:  # refused by the options' problems
        return {}
    shared = {
        places.SETTINGS: render(
            "ray/ray.env.j2",
            address=options.address(cluster),
            certificate=certificate,
            ca=ca.trust_file,
            token=places.TOKEN,
            log_bytes=options.log_mib * _MIB,
            log_files=options.log_files,
            node=node.name,
        ),
        TMPFILES: render("ray/tmpfiles.conf.j2", state=options.state, days=options.log_days),
        f"{places.UNIT_FOLDER}/{options.unit(node)}": unit_text(cluster, node, options),
    }
    if not options.is_head(node):
        return shared
    return {
        **shared,
        HEAD_SETTINGS: render(
            "ray/head.env.j2",
            redis_port=options.ports.redis,
            missed=options.missed_health_checks,
            cluster=cluster.name,
            programs=places.PROGRAMS,
            redis_password=places.REDIS_PASSWORD,
            gcs_server=places.GCS_SERVER,
        ),
    }


def programs() -> dict[str, str]:
    """(text by path) of programs, mode 755."""
    return {
        places.WITH_RAY: render(
            "ray/with-ray.j2",
            settings=places.SETTINGS,
            programs=places.PROGRAMS,
            user=places.USER,
            python=places.PYTHON,
        ),
        places.GCS_SERVER: render("ray/gcs-server.j2", python=places.PYTHON, flags=places.GCS_FLAGS),
        places.HOOK: render("ray/hook.py.j2"),
        places.NODES: render("ray/nodes.py.j2"),
        places.PROVE: render("ray/prove.py.j2"),
        places.SUPERVISE: render("ray/supervise.py.j2", with_ray=places.WITH_RAY),
    }


def secret_files(node: Node, options: RayOptions, secret: Callable[[str], str]) -> dict[str, str]:
    """Text by path of files that Ray's user may read."""
    token = {places.TOKEN: secret("ray_token")}
    if not options.is_head(node):
        return token
    password = secret("ray_redis_password")
    return {
        **token,
        places.REDIS_PASSWORD: f"{password}\n",
        places.GCS_FLAGS: f"--redis_password={password}\n",
    }


def redis_conf(options: RayOptions, secret: Callable[[str], str]) -> str:
    """Redis' settings, with its password."""
    return render(
        "ray/redis.conf.j2",
        port=options.ports.redis,
        password=secret("ray_redis_password"),
        data=places.REDIS_DATA,
    )
