"""ray_on_slurm: what a job of Slurm needs to run a Ray cluster on the nodes that Slurm gave it.

No daemon and no secret: Ray starts with a job and ends with it, as the job's user, with the CPUs, memory and GPUs of the job.
ray-job does it, and an sbatch script shows how. `ray symmetric-run`, Ray's own program for this, has Ray's fixed ports and
stops every Ray of the user on a node, so two jobs on one node would end each other (ray/scripts/symmetric_run.py of 2.60,
read 2026-11-28); it makes neither keys nor a token.
"""
