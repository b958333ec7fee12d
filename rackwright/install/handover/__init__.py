"""The second boot of a node that declares the distribution's own installer: its files, its medium, its answers."""
