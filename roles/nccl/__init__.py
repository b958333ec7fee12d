"""nccl: /etc/nccl.conf, derived from the declared fabric and never typed by hand.

Each line has its source as a comment above it. What NCCL finds better by itself is left to it: algorithms, protocols and
channels are never set, and neither is the index of a GID, which NCCL has found by itself since 2.21. NCCL reads the
environment first, then the user's file (`NCCL_CONF_FILE` or ~/.nccl.conf), then /etc/nccl.conf, and the first value counts
(NCCL, src/misc/param.cc, read 2026-11-25): so a stray setting elsewhere wins over this file, and `verify` looks for those
that every user gets.
"""
