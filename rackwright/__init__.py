"""rackwright: one typed cluster file becomes an installed, verified and burnt-in GPU cluster."""

__version__ = "0.1.0"
