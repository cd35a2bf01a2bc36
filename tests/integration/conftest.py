import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from lib import dayfly  # noqa: E402

# A sanitizer's finding must fail the test that caused it, not scroll by.
os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:exitcode=99")
os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")


@pytest.fixture(scope="session")
def tofu():
    return dayfly.tofu()


@pytest.fixture(scope="session")
def terraform():
    path = dayfly.terraform()
    if not path:
        pytest.skip("no terraform on this machine")
    return path


@pytest.fixture
def home(tmp_path, tofu):
    """A user with OpenTofu in PATH."""
    return dayfly.Home(tmp_path / "home", tofu)


@pytest.fixture(params=["tofu", "terraform"])
def either_home(request, tmp_path):
    """The same test with the real OpenTofu and with the real Terraform."""
    return dayfly.Home(tmp_path / "home", request.getfixturevalue(request.param))


@pytest.fixture
def server(home):
    """A running `dayfly serve`."""
    with dayfly.Server(home) as running:
        yield running
