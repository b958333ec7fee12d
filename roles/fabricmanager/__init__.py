"""NVIDIA Fabric Manager on nodes whose board has NVSwitches, at exactly the driver's version.

Without it, or at another version, CUDA fails with error 802 although nvidia-smi lists every GPU. NSCQ comes with
it, and NVLSM where the switches are of NVLink 5.
"""
