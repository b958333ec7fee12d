"""md arrays, LVM volumes and filesystems on declared disks, mounted at every boot.

Disks are named by serial or slot and never found by a scan. One that holds anything is written to only after its
serial was typed for that run; one that is in use never is.
"""
