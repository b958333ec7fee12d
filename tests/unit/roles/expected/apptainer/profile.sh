# Written by rackwright from the cluster file; changes made here are undone.
export APPTAINER_CACHEDIR="/scratch/apptainer/$(id -u)/cache"
export APPTAINER_TMPDIR="/scratch/apptainer/$(id -u)/tmp"
(umask 077; mkdir -p "$APPTAINER_CACHEDIR" "$APPTAINER_TMPDIR" 2>/dev/null) || :
