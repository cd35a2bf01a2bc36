"""The same module and state as in test_estate.py, with a pod for each step."""

import subprocess

from lib.estate import DEV, PROD, Estate
from lib.pods import Pods, config_map_of


def mount(pods, estate):
    """The module as it is now, where the pods find it."""
    files = [f for f in estate.directory.iterdir() if f.name != ".terraform"]
    copy = pods.home.directory / "packed"
    subprocess.run(["rm", "-rf", copy], check=True)
    copy.mkdir()
    subprocess.run(["cp", "-r", *files, copy], check=True)
    pods.namespace.apply(config_map_of(copy, "estate"))


def document(estate, var_file):
    return estate.document(var_file, source={"url": "file:///module/module.tar.gz", "kind": "archive"},
                           placement={"configMapMounts": [{"name": "estate", "mountPath": "/module"}]})


def test_a_module_with_a_state_is_adopted_changed_and_destroyed_in_pods(home, namespace, tofu):
    with Pods(home, namespace, tofu) as pods:
        estate = Estate(home)
        mount(pods, estate)
        estate.apply(document(estate, DEV))
        home.dayfly("state", "push", estate.name, estate.state)
        estate.check_adopted()
        estate.take_away_state()
        estate.lay_next_over()
        mount(pods, estate)
        estate.apply(document(estate, PROD))
        estate.check_changed()
        estate.check_destroyed()
