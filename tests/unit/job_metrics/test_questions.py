"""What is asked of Prometheus for a user: nothing that a user could bend."""

from __future__ import annotations

import json

import pytest
import yaml

from rackwright.job_metrics.questions import UNITS, USER_MAX, expressions, ownership
from tests.unit.alerts.promtool import promtool

NAMES = (
    *("ada", "ada@example.com", "EX\\ada", "ada+b", "Ada Müller", "x" * USER_MAX),
    *("ada\\", "\\n", ".*", 'ada"} or vector(1) #', 'ada\\"} or vector(1) #', 'ada",job=~".+'),
)
"""As directories have them, and as an attacker would."""


def test_every_expression_is_joined_with_the_owner_of_the_job():
    found = expressions("42", "ada")
    assert set(found) == set(UNITS)
    assert all('slurm_job_info{job="42",user="ada"}' in text for text in found.values())


def test_an_operator_is_not_held_to_an_owner():
    assert all('slurm_job_info{job="42"}' in text for text in expressions("42", None).values())
    assert ownership("42", None, 3) == 'count_over_time(slurm_job_info{job="42"}[3d])'


def test_the_ownership_of_a_job_is_asked_for_this_user():
    assert ownership("42", "ada", 31) == 'count_over_time(slurm_job_info{job="42",user="ada"}[31d])'


def test_a_name_is_that_of_one_user_whatever_it_contains(tmp_path):
    """Prometheus itself finds the job of this user, and of no other."""
    series = [
        {"series": f'slurm_job_info{{job="{job}",user={json.dumps(name)}}}', "values": "1 1"}
        for job, name in enumerate(NAMES)
    ]
    checks = [
        {
            "expr": f"count({ownership(str(job), user, 31)})",
            "eval_time": "1m",
            "exp_samples": [{"labels": "{}", "value": 1}] if name == user else [],
        }
        for job, name in enumerate(NAMES)
        for user in NAMES
    ]
    document = {"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": checks}]}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(document))
    ran = promtool("test", "rules", str(tmp_path / "test.yml"))
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("job", "user"),
    [
        ('1"} or slurm_job_info{user="bob', "ada"),
        ("1 ", "ada"),
        ("", "ada"),
        ("٣", "ada"),
        ("1", ""),
        ("1", "ada\nbob"),
        ("1", "ada\x1b[2J"),
        ("1", "ada\udcff"),
        ("1", "x" * (USER_MAX + 1)),
    ],
)
def test_what_is_no_job_or_no_user_is_refused(job, user):
    with pytest.raises(ValueError, match="not a job of a user"):
        expressions(job, user)
    with pytest.raises(ValueError, match="not a job of a user"):
        ownership(job, user, 31)
