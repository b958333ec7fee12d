#!/bin/sh
# Written by rackwright from the cluster file of lab; changes made here are undone.
#
# Runs the executables of /etc/slurm/epilog.d as root, in the order of their names. Slurm could be
# given the folder itself, but then an empty one drains every node, the order is backwards, and
# failures do not name the script. Leftovers of editors and package tools are skipped.
# All are run even where one fails; any failure drains the node.
status=0
for script in /etc/slurm/epilog.d/*; do
    case ${script##*/} in *~ | *.bak | *.orig | *.rej | *.dpkg-* | *.rpm*) continue ;; esac
    [ -f "$script" ] && [ -x "$script" ] || continue
    "$script" </dev/null && continue
    status=$?
    logger -p daemon.err -t slurm-epilog "$script exited $status for job ${SLURM_JOB_ID:-?}"
done
exit $status
