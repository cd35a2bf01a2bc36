import contextlib
import os
import pathlib
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from lib import cluster as kubernetes  # noqa: E402
from lib import dayfly  # noqa: E402
from lib.argo import Ground  # noqa: E402
from lib.steps import Steps  # noqa: E402

# A sanitizer's finding must fail the test that caused it, not scroll by.
os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:exitcode=99")
os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")


def pytest_configure(config):
    config.addinivalue_line("markers", "cluster: uses the real Kubernetes")
    config.addinivalue_line("markers", "alone: stops parts of it, so that no other test may use it meanwhile")


def has_fixture_of_module(item):
    """Those take long to make."""
    return any(d.scope == "module" for found in item._fixtureinfo.name2fixturedefs.values() for d in found)


def pytest_collection_modifyitems(items):
    """Tests that share what their module makes come to one worker (--dist loadgroup): it is made once."""
    for item in items:
        for name, fixture in (("cluster", "cluster"), ("alone", "exclusive")):
            if fixture in item.fixturenames:
                item.add_marker(name)
        if has_fixture_of_module(item):  # also a ground of its own
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
        elif "ground" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group("ground"))


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
def steps(home):
    """Steps of a runner without a spawner."""
    return Steps(home)


@pytest.fixture
def server(home):
    """A running `dayfly serve`."""
    with dayfly.Server(home) as running:
        yield running


@pytest.fixture(scope="session")
def cluster():
    """The real Kubernetes, once a session."""
    if os.geteuid() != 0:
        pytest.skip("a Kubernetes node needs root")
    with kubernetes.Use() as running:
        yield running


@pytest.fixture(scope="session")
def ground_of_session():
    with tempfile.TemporaryDirectory(prefix="dayfly-ground-") as directory, Ground(pathlib.Path(directory) / "ground") as running:
        yield running


@pytest.fixture
def ground(ground_of_session):
    """A real Argo CD on a Kubernetes without machines (lib/argo.py), as if it were new: no Application is left."""
    yield ground_of_session
    ground_of_session.clean()


@pytest.fixture
def exclusive(cluster):
    """For a test that changes what all share: no other runs meanwhile. It puts everything back."""
    with kubernetes.Calm(alone=True):
        yield cluster


@pytest.fixture
def alone(exclusive):
    """For a test that stops parts of the cluster: everything runs again afterwards."""
    yield exclusive
    exclusive.restart_watchers()


@pytest.fixture
def namespace(request, cluster):
    """A namespace of the test's own, in a cluster that nobody disturbs."""
    calm = contextlib.nullcontext() if "exclusive" in request.fixturenames else kubernetes.Calm(alone=False)
    with calm:
        fresh = kubernetes.Namespace(cluster)
        yield fresh
        fresh.close()
