"""GPUDirect RDMA: NICs reach GPU memory directly, by dma-buf, with nothing between them redirecting the traffic.

dma-buf needs the open kernel modules and a kernel of 5.12 or newer, and no further module; nvidia-peermem is the
older way, for proprietary modules with DOCA-OFED. PCIe ACS and an IOMMU that translates both send what should go
from device to device through the root complex, at a fraction of the bandwidth.
"""
