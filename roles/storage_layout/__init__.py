"""md arrays, LVM volumes and filesystems on declared disks, mounted at every boot.

Disks are named by serial or slot and never found by a scan. A disk that holds data is written to only after its
serial was typed for that run; a disk in use never is.
"""
