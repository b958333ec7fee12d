"""`python -m rackwright`."""

from rackwright.cli import main

main()
