"""GDRCopy: low-latency copies by the CPU to and from GPU memory, through the kernel module gdrdrv."""
