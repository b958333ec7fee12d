"""Runs on the rack's head in Ray's environment: an echo service, load on it, and what Serve reports of it.

serving_app.py deploy | load SECONDS CLIENTS | replicas | remove
"""

import json
import os
import sys
import threading
import time
import urllib.request

import ray
from ray import serve

NAME, PORT = "echo", 8123
MOST = 3


@serve.deployment(
    ray_actor_options={"num_cpus": 1},
    autoscaling_config={
        "min_replicas": 1,
        "max_replicas": MOST,
        "target_ongoing_requests": 1,
        "upscale_delay_s": 2,
        "downscale_delay_s": 10,
        "metrics_interval_s": 2,
        "look_back_period_s": 4,
    },
)
class Echo:
    """Answers with its node's name, after the time that a small model takes."""

    async def __call__(self, request):
        import asyncio

        await asyncio.sleep(0.2)
        return os.environ["RACKWRIGHT_RAY_NODE"]


def connect():
    ray.init(
        address=os.environ["RAY_ADDRESS"], namespace="serving", log_to_driver=False, logging_level="ERROR"
    )


def deploy():
    connect()
    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": PORT})
    serve.run(Echo.bind(), name=NAME, route_prefix="/")


def replicas():
    connect()
    states = serve.status().applications[NAME].deployments["Echo"].replica_states
    print("\n" + json.dumps({str(getattr(key, "value", key)): count for key, count in states.items()}))


def remove():
    connect()
    serve.shutdown()


def load(seconds, clients):
    """Requests of several clients: [second of its end, node or None] of each, as JSON."""
    began, answers = time.monotonic(), []

    def client():
        while time.monotonic() - began < float(seconds):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=5) as response:
                    node = response.read().decode()
            except OSError:
                node = None
                time.sleep(0.2)
            answers.append([round(time.monotonic() - began, 1), node])

    threads = [threading.Thread(target=client) for _ in range(int(clients))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    print("\n" + json.dumps(answers))


{"deploy": deploy, "load": load, "replicas": replicas, "remove": remove}[sys.argv[1]](*sys.argv[2:])
