"""docs/airgap.md on the real cluster: the network of the steps ends at the spawner."""

from lib import crds, web
from lib.ledger import Ledger
from lib.pods import NODE, reach, runner_image
from lib.policy import PROHIBITED, Enforced, Inside
from lib.providers import MIRRORED, Registry, mirrored, requiring
from lib.release import Release

MODULE = requiring(MIRRORED) + 'output "value" { value = simple_resource.r.value }\n'
NOWHERE = {"denied": ["0.0.0.0/1", "128.0.0.0/1"], "deniedV6": ["::/1", "8000::/1"]}


def wait_address(namespace, name):
    return namespace.wait("pod", name, lambda pod: pod["status"].get("podIP"))


def test_a_module_with_a_provider_is_applied_with_no_way_out_but_to_the_spawner(home, namespace, tofu, tmp_path):
    mirror = mirrored(home, tmp_path)
    reach(mirror)
    crds.install(namespace.cluster)
    ledger = Ledger(tmp_path / "ledger")
    release = Release(home, namespace, tofu, crds={"install": False}, replicaCount=1,
                      networkPolicy={"stepEgress": NOWHERE},
                      providers={"mirror": {"volume": {"hostPath": {"path": str(mirror), "type": "Directory"}}}}).install()
    release.executor("net", MODULE, ledger.placement(runner_image(namespace.cluster, tofu)))
    for step in ("net-1-plan", "net-1-apply"):
        ledger.hold("start", step)
    process, _ = release.begin("net")
    with web.Server(web.Handler, host=NODE) as outside:
        there = NODE, outside.httpd.server_port
        step = Inside(wait_address(namespace, ledger.wait_held("start", "net-1-plan")))
        assert step.connect(*there) == "connected", "without the policies there is a way out"
        for name in ("net-1-plan", "net-1-apply"):
            step = Inside(wait_address(namespace, ledger.wait_held("start", name)))
            with Enforced(namespace):
                assert step.connect(*there) == PROHIBITED
                ledger.let_go("start", name)
                namespace.wait("job", name, lambda job: job.get("status", {}).get("succeeded"))
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said
    assert f"Installing {MIRRORED.removeprefix(Registry.HOST + '/')} v1.0.0" in home.dayfly("logs", "net-1").stdout
    assert home.dayfly("outputs", "net", "value").stdout == "x\n"
