"""What a machine boots, and what is left of the override."""

from __future__ import annotations

import pytest

from rackwright.lab.bmc.choice import choose
from rackwright.lab.bmc.settings import Override

NONE = Override()


@pytest.mark.parametrize(
    ("override", "order", "later", "left"),
    [
        (NONE, ("disk",), ("disk",), NONE),
        (Override("Cd", "Once"), ("cd", "disk"), ("disk",), NONE),
        (Override("Cd", "Continuous"), ("cd", "disk"), ("cd", "disk"), Override("Cd", "Continuous")),
        (Override("Pxe", "Once"), ("network", "disk"), ("disk",), NONE),
        (Override("UefiHttp", "Once", "http://10.0.0.1/a"), ("network", "disk"), ("disk",), NONE),
        (Override("Hdd", "Once"), ("disk",), ("disk",), NONE),
        (Override("Cd", "Disabled"), ("disk",), ("disk",), Override("Cd", "Disabled")),
    ],
)
def test_override_first_then_the_disks(
    override: Override, order: tuple[str, ...], later: tuple[str, ...], left: Override
):
    chosen = choose(override)
    assert (chosen.order, chosen.later, chosen.left) == (order, later, left)


@pytest.mark.parametrize(
    ("override", "by_http"),
    [
        (Override("UefiHttp", "Once"), True),
        (Override("UefiHttp", "Continuous"), True),
        (Override("UefiHttp", "Disabled"), False),
        (Override("Pxe", "Once"), False),
        (NONE, False),
    ],
)
def test_the_network_means_http_where_that_is_asked_for(override: Override, by_http: bool):
    assert choose(override).by_http is by_http
