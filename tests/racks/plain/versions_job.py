"""A deploy, run by path: jq at the version it has, held. No role of the lab declares either."""

import os

from rackwright.operations import packages

packages.installed(name="Hold jq", packages=(f"jq={os.environ['JQ_VERSION']}",), hold=True)
