#!/bin/sh
# Written by rackwright from the cluster file of lab; changes made here are undone.
#
# Runs the executables of /etc/slurm/prolog.d as root, in the order of their names. Slurm could be
# given the folder itself, but then an empty one drains every node, the order is backwards, and
# failures do not name the script. Leftovers of editors and package tools are skipped.
# The first that fails ends it: the node is drained and the job goes back to the queue.
status=0
for script in /etc/slurm/prolog.d/*; do
    case ${script##*/} in *~ | *.bak | *.orig | *.rej | *.dpkg-* | *.rpm*) continue ;; esac
    [ -f "$script" ] && [ -x "$script" ] || continue
    "$script" </dev/null && continue
    status=$?
    logger -p daemon.err -t slurm-prolog "$script exited $status for job ${SLURM_JOB_ID:-?}"
    break
done
exit $status
