"""GPUDirect RDMA: NICs reach GPU memory directly, by dma-buf.

dma-buf needs the open kernel modules and a kernel of 5.12 or newer, and no further module; nvidia-peermem is the
older way, for proprietary modules with DOCA-OFED. What may stand between the two, PCIe ACS and an IOMMU that
translates, is the kernel role's.
"""
