"""apptainer: images as files, run as the user who starts them.

Where it comes from: EPEL on EL; on Debian and Ubuntu the project's own release packages (no Debian release
has it, looked up 2026-11), declared by version and digest, or on Ubuntu the project's PPA.

Without setuid it works through user namespaces, which leaves no privileged program on the node; with it,
any user who may run an image can reach kernel bugs in file systems.
"""
