"""What is asked of Prometheus for a user: nothing that a user could bend."""

from __future__ import annotations

import pytest

from rackwright.job_metrics.questions import UNITS, expressions, ownership


def test_every_expression_is_joined_with_the_owner_of_the_job():
    found = expressions("42", "ada")
    assert set(found) == set(UNITS)
    assert all('slurm_job_info{job="42",user="ada"}' in text for text in found.values())


def test_an_operator_is_not_held_to_an_owner():
    assert all('slurm_job_info{job="42"}' in text for text in expressions("42", None).values())
    assert ownership("42", None, 3) == 'count_over_time(slurm_job_info{job="42"}[3d])'


def test_the_ownership_of_a_job_is_asked_for_this_user():
    assert ownership("42", "ada", 31) == 'count_over_time(slurm_job_info{job="42",user="ada"}[31d])'


@pytest.mark.parametrize(
    ("job", "user"),
    [
        ('1"} or slurm_job_info{user="bob', "ada"),
        ("1 ", "ada"),
        ("", "ada"),
        ("٣", "ada"),
        ("1", 'ada"} or vector(1) #'),
        ("1", ""),
        ("1", "ada\nbob"),
        ("1", ".*"),
    ],
)
def test_what_is_no_job_or_no_user_is_refused(job, user):
    with pytest.raises(ValueError, match="not a job of a user"):
        expressions(job, user)
    with pytest.raises(ValueError, match="not a job of a user"):
        ownership(job, user, 31)
