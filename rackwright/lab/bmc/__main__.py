"""`python -m rackwright.lab.bmc RACK`: the BMCs of a rack, until ended. `rackwright lab up` starts it."""

from __future__ import annotations

import sys

from rackwright.lab.bmc.process import serve

if __name__ == "__main__":
    serve(sys.argv[1])
