# Written by rackwright from the cluster file; changes made here are undone.
# Root has made the folder before this session or job. One that another user owns is not used.
rackwright_folder="/scratch/apptainer/$(id -u)"
if [ -O "$rackwright_folder" ] && [ ! -L "$rackwright_folder" ]; then
    export APPTAINER_CACHEDIR="$rackwright_folder/cache"
    export APPTAINER_TMPDIR="$rackwright_folder/tmp"
    (umask 077; mkdir -p "$APPTAINER_CACHEDIR" "$APPTAINER_TMPDIR" 2>/dev/null) || :
elif [ -e "$rackwright_folder" ] || [ -L "$rackwright_folder" ]; then
    echo "apptainer: $rackwright_folder belongs to another user and is not used; ask the operators" >&2
fi
unset rackwright_folder
