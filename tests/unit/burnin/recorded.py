"""Outputs as they were recorded or published; what is made up stands in the tests that use it."""

# Recorded. CSCS Alps, 2 nodes with 4 GH200 each, nccl-tests 2.17.1, as published in
# github.com/eth-cscs/cscs-docs, docs/software/communication/nccl.md ("All-reduce latency"),
# commit 1690357c10f4e05dab9e8654a6d4bae1466c1910, read 2026-11-20. Numeric lines are whole.
GH200_TWO_NODES = """\
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid 204199 on  nid005471 device  0 [0009:01:00] NVIDIA GH200 120GB
#  Rank  1 Group  0 Pid 204200 on  nid005471 device  1 [0019:01:00] NVIDIA GH200 120GB
#  Rank  2 Group  0 Pid 204201 on  nid005471 device  2 [0029:01:00] NVIDIA GH200 120GB
#  Rank  3 Group  0 Pid 204202 on  nid005471 device  3 [0039:01:00] NVIDIA GH200 120GB
#  Rank  4 Group  0 Pid 155254 on  nid005487 device  0 [0009:01:00] NVIDIA GH200 120GB
#  Rank  5 Group  0 Pid 155255 on  nid005487 device  1 [0019:01:00] NVIDIA GH200 120GB
#  Rank  6 Group  0 Pid 155256 on  nid005487 device  2 [0029:01:00] NVIDIA GH200 120GB
#  Rank  7 Group  0 Pid 155257 on  nid005487 device  3 [0039:01:00] NVIDIA GH200 120GB
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       
           8             2     float     sum      -1    17.93    0.00    0.00      0    17.72    0.00    0.00      0
          16             4     float     sum      -1    17.65    0.00    0.00      0    17.63    0.00    0.00      0
          32             8     float     sum      -1    17.54    0.00    0.00      0    17.43    0.00    0.00      0
          64            16     float     sum      -1    19.27    0.00    0.01      0    19.21    0.00    0.01      0
         128            32     float     sum      -1    18.86    0.01    0.01      0    18.67    0.01    0.01      0
         256            64     float     sum      -1    18.83    0.01    0.02      0    19.02    0.01    0.02      0
         512           128     float     sum      -1    19.72    0.03    0.05      0    19.40    0.03    0.05      0
        1024           256     float     sum      -1    20.35    0.05    0.09      0    20.32    0.05    0.09      0
        2048           512     float     sum      -1    22.07    0.09    0.16      0    21.72    0.09    0.17      0
        4096          1024     float     sum      -1    31.97    0.13    0.22      0    31.58    0.13    0.23      0
        8192          2048     float     sum      -1    37.21    0.22    0.39      0    35.84    0.23    0.40      0
       16384          4096     float     sum      -1    37.29    0.44    0.77      0    36.53    0.45    0.78      0
       32768          8192     float     sum      -1    39.61    0.83    1.45      0    37.09    0.88    1.55      0
       65536         16384     float     sum      -1    61.03    1.07    1.88      0    68.45    0.96    1.68      0
      131072         32768     float     sum      -1    81.41    1.61    2.82      0    72.94    1.80    3.14      0
      262144         65536     float     sum      -1    127.0    2.06    3.61      0    108.9    2.41    4.21      0
      524288        131072     float     sum      -1    170.3    3.08    5.39      0    349.6    1.50    2.62      0
     1048576        262144     float     sum      -1    164.3    6.38   11.17      0    187.7    5.59    9.77      0
     2097152        524288     float     sum      -1    182.1   11.51   20.15      0    180.6   11.61   20.32      0
     4194304       1048576     float     sum      -1    292.7   14.33   25.08      0    295.4   14.20   24.85      0
     8388608       2097152     float     sum      -1    344.5   24.35   42.61      0    345.7   24.27   42.47      0
    16777216       4194304     float     sum      -1    461.7   36.34   63.59      0    454.0   36.95   64.67      0
    33554432       8388608     float     sum      -1    686.5   48.88   85.54      0    686.6   48.87   85.52      0
    67108864      16777216     float     sum      -1   1090.5   61.54  107.69      0   1083.5   61.94  108.39      0
   134217728      33554432     float     sum      -1   1916.4   70.04  122.57      0   1907.8   70.35  123.11      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 19.7866 
#
# Collective test concluded: all_reduce_perf
"""

# Recorded. Two p5.48xlarge (16 H100), labels of `srun -l`, without header of ranks and without
# footer, as published in github.com/awslabs/awsome-distributed-ai,
# micro-benchmarks/nccl-tests/README.md, commit 0b55ba5f073051f685f4258591b9d3a3326403c5, read
# 2026-11-20. The last rows of the table that are published whole.
P5_LABELLED_WITHOUT_FOOTER = """\
0: #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
0: #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       
0:   1073741824     268435456     float     sum      -1   4607.6  233.04  436.95      0   4565.6  235.18  440.96      0
0:   2147483648     536870912     float     sum      -1   9074.5  236.65  443.72      0   9108.5  235.77  442.06      0
0:   4294967296    1073741824     float     sum      -1    17286  248.46  465.87      0    17343  247.64  464.33      0
0:   8589934592    2147483648     float     sum      -1    33605  255.62  479.28      0    33628  255.44  478.95      0
"""

# Recorded. One RTX 5090, github.com/NVIDIA/nccl-tests issue 287, comment of 2025-03-14 by RCS1:
# N/A in place is by design for alltoall (src/alltoall.cu sets reportErrors = 0 there).
ALLTOALL_ONE_GPU = """\
# nThread 1 nGpus 1 minBytes 33554432 maxBytes 33554432 step: 1048576(bytes) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid 2181762 on   GENOA-01 device  0 [0x01] NVIDIA GeForce RTX 5090
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       
    33554432       8388608     float    none      -1    19.56  1715.44    0.00      0     0.78  43046.10    0.00    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0 
#
"""

# Recorded. Two V100, nccl-tests of 2021 with an error column and without validation,
# github.com/NVIDIA/nccl-tests issue 82, comment of 2021-05-11 by rahul-bothra.
OLD_ERROR_COLUMN = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes 2147483648 step: 2(factor) warmup iters: 10 iters: 100 validation: 0 
#
# Using devices
#   Rank  0 Pid  14926 on v100-gpu-1 device  0 [0x00] Tesla V100-PCIE-16GB
#   Rank  1 Pid   9210 on v100-gpu-5 device  0 [0x00] Tesla V100-PCIE-16GB
NCCL version 2.9.6+cuda11.2
#                                                     out-of-place                       in-place          
#       size         count    type    root     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       
           8             2   float       0    45.82    0.00    0.00    N/A    38.17    0.00    0.00    N/A
"""

# Recorded. NCCL 2.16.2 on two nodes with InfiniBand, without GPUDirect RDMA; from the public
# article "Setting up Horovod on cluster", section 7, read 2026-11-20.
NCCL_LOG_IB = """\
[0]<stdout>:node01:150770:150790 [0] NCCL INFO NET/IB : Using [0]mlx4_0:1/IB [1]mlx4_0:2/IB ; OOB ib0:10.149.0.1<0>
[0]<stdout>:node01:150770:150790 [0] NCCL INFO Using network IB
[0]<stdout>:node01:150770:150790 [0] NCCL INFO Channel 00/0 : 1[3b000] -> 0[3b000] [receive] via NET/IB/1
[1]<stdout>:node03:34537:34681 [0] NCCL INFO Channel 00/0 : 0[3b000] -> 1[3b000] [receive] via NET/IB/1
[0]<stdout>:node01:150770:150790 [0] NCCL INFO Channel 00/0 : 0[3b000] -> 1[3b000] [send] via NET/IB/1
[1]<stdout>:node03:34537:34681 [0] NCCL INFO Channel 00/0 : 1[3b000] -> 0[3b000] [send] via NET/IB/1
[0]<stdout>:node01:150770:150790 [0] NCCL INFO Connected all rings
"""

# Recorded. Two DGX H100, NCCL 2.19.3: github.com/NVIDIA/nccl-tests issue 185, comment of chgdragon2023; read 2026-11-25.
NCCL_LOGS_OF_DEVICES = (
    "dgxh100-4:460770:460842 [0] NCCL INFO NET/IB : Using [0]mlx5_10:1/RoCE [1]mlx5_11:1/RoCE [RO]; OOB enp220s0np0:11.1.128.136<0>",
    "dgxh100-3:2152176:2152299 [0] NCCL INFO NET/IB : Using [0]mlx5_10:1/RoCE [1]mlx5_11:1/RoCE [RO]; OOB enp220s0np0:11.1.128.128<0>",
)

# Recorded. The mpi engine's own program, two ranks on one machine with two cores, Open MPI 5.0.11,
# 2026-11-20.
MPI_TWO_RANKS = """\
# rackwright all_reduce over MPI
# openmpi version 5.0.11
# mpi4py version 4.1.2
# numpy version 2.4.6
# kernel version 6.18.44-fc-v669
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 0 minBytes 8 maxBytes 67108864 step: 2(factor) warmup iters: 2 iters: 200 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid  32106 on         vm device  0 [cpu] x86_64
#  Rank  1 Group  0 Pid  32107 on         vm device  0 [cpu] x86_64
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)        
           8             2     float     sum      -1     2.49    0.00    0.00       0     1.47    0.01    0.01       0
          16             4     float     sum      -1     2.48    0.01    0.01       0     1.51    0.01    0.01       0
          32             8     float     sum      -1     2.05    0.02    0.02       0     1.44    0.02    0.02       0
          64            16     float     sum      -1     2.81    0.02    0.02       0     2.25    0.03    0.03       0
         128            32     float     sum      -1     1.93    0.07    0.07       0     1.60    0.08    0.08       0
         256            64     float     sum      -1     2.13    0.12    0.12       0     1.63    0.16    0.16       0
         512           128     float     sum      -1     2.70    0.19    0.19       0     2.42    0.21    0.21       0
        1024           256     float     sum      -1     2.85    0.36    0.36       0     2.60    0.39    0.39       0
        2048           512     float     sum      -1     3.48    0.59    0.59       0     3.77    0.54    0.54       0
        4096          1024     float     sum      -1     6.11    0.67    0.67       0     4.96    0.83    0.83       0
        8192          2048     float     sum      -1     7.80    1.05    1.05       0     7.23    1.13    1.13       0
       16384          4096     float     sum      -1    11.94    1.37    1.37       0    11.32    1.45    1.45       0
       32768          8192     float     sum      -1    14.77    2.22    2.22       0    15.13    2.17    2.17       0
       65536         16384     float     sum      -1    22.01    2.98    2.98       0    20.16    3.25    3.25       0
      131072         32768     float     sum      -1    34.92    3.75    3.75       0    43.76    3.00    3.00       0
      262144         65536     float     sum      -1    58.88    4.45    4.45       0    57.62    4.55    4.55       0
      524288        131072     float     sum      -1   128.33    4.09    4.09       0   115.82    4.53    4.53       0
     1048576        262144     float     sum      -1   303.81    3.45    3.45       0   233.28    4.49    4.49       0
     2097152        524288     float     sum      -1   590.14    3.55    3.55       0   408.05    5.14    5.14       0
     4194304       1048576     float     sum      -1  1087.04    3.86    3.86       0   741.05    5.66    5.66       0
     8388608       2097152     float     sum      -1  2111.04    3.97    3.97       0  1334.17    6.29    6.29       0
    16777216       4194304     float     sum      -1  5337.36    3.14    3.14       0  3242.45    5.17    5.17       0
    33554432       8388608     float     sum      -1  20062.3    1.67    1.67       0  15087.7    2.22    2.22       0
    67108864      16777216     float     sum      -1  44365.1    1.51    1.51       0  31525.1    2.13    2.13       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 2.01196
#
# Collective test concluded: all_reduce_perf
"""
