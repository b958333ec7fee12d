"""Node health: one probe script, and checks that judge its document against what is declared.

`rackwright.health.probe` and the judging modules load nothing but the standard library, on
Python 3.9 too: they are bundled (`rackwright.health.bundle`) and run on nodes by themselves.
Only `declare`, `options`, `run`, `docs` and the command line need the rest of rackwright.
"""
