"""Node health: one probe script, and checks that judge its document against what is declared.

`rackwright.health.probe` and the judging modules load nothing but the standard library, on
Python 3.9 too: they run on nodes by themselves (`rackwright.node_programs`).
Only `declare`, `options`, `run`, `docs` and the command line need the rest of rackwright.
"""
