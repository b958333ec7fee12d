"""The NVIDIA Container Toolkit: GPUs in containers by CDI, which every engine here reads.

A CDI spec names each device and what goes with it, so an engine needs no hook, no runtime of NVIDIA's and no line in
its own configuration; and a daemon-reload does not take devices from running containers, as it does from those of the
old hook.
"""
