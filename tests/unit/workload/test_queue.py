"""squeue's rows, among what users write into names."""

from __future__ import annotations

from rackwright.workload.slurm.queue import parse_queue


def test_a_job_on_many_nodes_is_a_job_of_each():
    found = parse_queue("m|7|ada|gpu[001-002],login1|train\n", "m")
    assert {node: [str(job) for job in jobs] for node, jobs in found.items()} == {
        name: ["7 (ada, train)"] for name in ("gpu001", "gpu002", "login1")
    }


def test_what_users_write_forges_no_row():
    text = "m|7|ada|gpu001|x\n8|root|gpu001|forged\nm|nine|ada|gpu001|y\nm|10|ada||waits\nm|11|ada|gpu[1-|broken\nm|12|a\x1bda|gpu001|z|w\n"
    (jobs,) = parse_queue(text, "m").values()
    assert [str(job) for job in jobs] == ["7 (ada, x)", r"12 (a\x1bda, z|w)"]
