"""The same job by pyinfra's API as its documentation shows it: `pyinfra_api.py INVENTORY JOB`."""

import runpy
import sys

from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all, disconnect_all
from pyinfra.api.deploy import add_deploy, deploy
from pyinfra.api.operations import run_ops


@deploy("job")
def job():
    """The forty operations."""
    runpy.run_path(sys.argv[2])


def main():
    """Connect, prepare, execute."""
    nodes = runpy.run_path(sys.argv[1])["nodes"]
    state = State(Inventory(nodes), Config())
    connect_all(state)
    add_deploy(state, job)
    run_ops(state)
    disconnect_all(state)
    return 1 if state.failed_hosts else 0


if __name__ == "__main__":
    sys.exit(main())
