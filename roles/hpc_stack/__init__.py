"""hpc_stack: the libraries and launchers of parallel jobs: MPI, NCCL and their benchmarks.

MPI is the distribution's Open MPI, or Open MPI and UCX (and PMIx) built on each node from declared tarballs, with
CUDA and GDRCopy where the node has them. A build goes into a folder whose name ends in a digest of its recipe (source,
flags, what it is built against), so another recipe is another folder, and an interrupted build leaves nothing that
looks like a finished one. The link without the digest is moved last, in one step; it is the path that users' programs
have in them, on every node the same. Old builds stay until the site removes them.

NCCL is the lock's, held. nccl-tests is built for the node's GPUs against it; burn-in finds its programs through the
interface ProvidesCollectives.

The role comes after cuda and gdrcopy, which it builds against, and before slurm: a node takes no job before its MPI is
there.
"""
