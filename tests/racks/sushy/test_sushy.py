"""A machine behind sushy-tools' Redfish emulator: status, power, discovery, installation, and back from its disk.

The emulator ignores `Once`, has neither sessions, a serial number nor an event log, and keeps an override always: what
rackwright does with such a BMC is part of what is looked at.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rackwright.install.states import State as Installation
from tests.patience import wait_until
from tests.racks.host_state import State, differences
from tests.racks.program import Ran
from tests.racks.sushy import bmcs, machine
from tests.racks.sushy.conftest import Operator
from tests.racks.sushy.private_site import BMC, IPMI_BMC, MACHINE, reached_from_here
from tests.racks.vagrant.machine_state import machine_state

pytestmark = [pytest.mark.lab, pytest.mark.proof]
