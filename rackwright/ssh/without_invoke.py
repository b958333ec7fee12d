"""Loads paramiko without invoke, and with it without asyncio and unittest: a quarter of its start.

paramiko wants invoke for `Match exec` in ~/.ssh/config, a file that is not read here, and does
without where it is missing. Whoever imports invoke afterwards gets it.
"""

import sys

_unknown = "invoke" not in sys.modules
if _unknown:
    sys.modules["invoke"] = None  # type: ignore[assignment]
try:
    import paramiko  # noqa: F401
finally:
    if _unknown:
        del sys.modules["invoke"]
