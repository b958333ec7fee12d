"""Raises the limit of open files: connections to many nodes need more than the usual 1024."""

from __future__ import annotations

import resource


def allow_open_files(wanted: int) -> None:
    """Raise the soft limit, and 256 more, as far as the process may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted += 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        ceiling = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, ceiling), hard))
