"""A module of forty files with a state of its own goes from the plain tool to dayfly: adopted, changed, destroyed."""

import pytest

from lib import dayfly
from lib.estate import DEV, PROD, Estate


@pytest.fixture(params=["embedded", "service"])
def shape(request, either_home):
    """The user's home, without a service and with one."""
    if request.param == "embedded":
        yield either_home
        return
    with dayfly.Server(either_home):
        yield either_home


def test_a_module_with_a_state_is_adopted_changed_and_destroyed(shape):
    estate = Estate(shape)
    estate.apply(estate.document(DEV))
    refused = shape.dayfly("run", estate.name, "--auto-approve", code=1)
    assert "terraform.tfstate" in refused.stdout + refused.stderr
    shape.dayfly("state", "push", estate.name, estate.state)
    estate.check_adopted()
    estate.take_away_state()
    estate.lay_next_over()
    estate.apply(estate.document(PROD))
    estate.check_changed()
    estate.check_destroyed()
