"""One pod for plan and apply (placement.podPerStep: false), on the real cluster."""

import io
import json
import zipfile

from lib import crds, web
from lib.dayfly import wait_for
from lib.ledger import World
from lib.mid import Mid, delete, evict, kill_runner, limit
from lib.pods import NODE, Pods
from lib.providers import MIRRORED, mirrored, requiring

ONE_POD = {"podPerStep": False}
SMALL = 'resource "terraform_data" "x" { input = 1 }\noutput "x" { value = terraform_data.x.output }\n'
WITH_PROVIDER = requiring(MIRRORED)


def jobs(namespace):
    return sorted(job["metadata"]["name"] for job in namespace.get("jobs"))


def pods(namespace):
    return {pod["metadata"]["name"] for pod in namespace.get("pods")}


def step(world, name):
    return world.document("taskactions", name)


def wait_over(namespace, job):
    """Until the pod of the Job has ended by itself."""
    namespace.wait("job", job, lambda found: found.get("status", {}).get("succeeded"))


def assert_same_pod(world, run):
    """Both steps were in the one pod of the plan's Job, each with a claim of its own."""
    plan, apply = step(world, f"{run}-plan"), step(world, f"{run}-apply")
    assert plan["metadata"]["uid"] != apply["metadata"]["uid"]
    assert apply["status"]["engineRef"]["uid"] == plan["status"]["engineRef"]["uid"]
    assert apply["status"]["engineRef"]["hostUid"] == plan["metadata"]["uid"]
    assert apply["status"]["claimedBy"]["podUid"] == plan["status"]["claimedBy"]["podUid"]


def test_plan_and_apply_have_one_job_and_one_pod(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        world.executor("net", SMALL, placement=ONE_POD)
        assert world.run("net")["run"]["status"]["reason"] == "Applied"
        assert_same_pod(world, "net-1")
        wait_over(namespace, "net-1-plan")
        assert jobs(namespace) == ["net-1-plan"] and len(pods(namespace)) == 1
        assert home.dayfly("outputs", "net", "x").stdout == "1\n"
        labels = namespace.get("jobs")[0]["metadata"]["labels"]
        assert labels["dayfly.dev/step-uid"] == step(world, "net-1-plan")["metadata"]["uid"]


def test_a_module_without_providers_needs_no_init_in_a_pod(home, namespace, tofu):
    """By the record of the tool in the image: no earlier step has left one in this pod."""
    with Pods(home, namespace, tofu) as world:
        world.executor("net", SMALL)
        assert world.run("net")["run"]["status"]["reason"] == "Applied"
        log = home.dayfly("logs", "net-1").stdout
        assert "dayfly: no init: the module needs no provider and no other module" in log and "Initializing" not in log, log


def test_documents_in_the_cluster_say_the_same(home, namespace, tofu):
    crds.install(namespace.cluster)
    try:
        with Pods(home, namespace, tofu, config={"store": "kubernetes"}) as world:
            world.executor("net", SMALL, placement=ONE_POD)
            assert world.run("net")["run"]["status"]["reason"] == "Applied"
            assert_same_pod(world, "net-1")
            wait_over(namespace, "net-1-plan")
            assert jobs(namespace) == ["net-1-plan"]
    finally:
        namespace.let_go()


def test_one_slot_is_enough_for_both_steps(home, namespace, tofu):
    with Pods(home, namespace, tofu, config={"limits": {"steps": 1}}) as world:
        for name in ("net", "dns"):
            world.executor(name, SMALL, placement=ONE_POD)
        runs = [world.ask(name) for name in ("net", "dns")]
        assert [world.ended(run)["reason"] for run in runs] == ["Applied", "Applied"]
        assert jobs(namespace) == ["dns-1-plan", "net-1-plan"]


def test_the_apply_needs_no_second_init(home, namespace, tofu, tmp_path):
    mirror = mirrored(home, tmp_path)
    with Pods(home, namespace, tofu, config={"providers": {"mirror": {"directory": str(mirror)}}}) as world:
        world.executor("net", WITH_PROVIDER, placement=ONE_POD)
        world.executor("two", WITH_PROVIDER)
        for name in ("net", "two"):
            assert world.run(name)["run"]["status"]["reason"] == "Applied"
        once, twice = (home.dayfly("logs", f"{name}-1").stdout for name in ("net", "two"))
        assert once.count("Installing ") == 1 and twice.count("Installing ") == 2, (once, twice)
        assert "dayfly: no init: what the plan's made is here" in once
        assert_same_pod(world, "net-1")


class Modules(web.Handler):
    """Gives the module to everybody, and counts."""

    def do_GET(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("main.tf", 'resource "terraform_data" "inner" { input = file("${path.module}/text") }\n')
            archive.writestr("text", "of the module")
        self.server.owner.count += 1
        self.answer(200, packed.getvalue(), Content_Type="application/zip")


def test_a_fetched_module_is_fetched_once(home, namespace, tofu):
    with web.Server(Modules, host=NODE) as server, Pods(home, namespace, tofu) as world:
        server.count = 0
        world.executor("net", f'module "m" {{ source = "{server.url}/m.zip" }}\n', placement=ONE_POD)
        assert world.run("net")["run"]["status"]["reason"] == "Applied"
        assert server.count == 1
        assert "dayfly: no init: what the plan's made is here" in home.dayfly("logs", "net-1").stdout


def test_a_source_that_the_plan_changed_is_fetched_again(home, namespace, tofu):
    with World(home, namespace, tofu) as world:
        world.make("net", placement=ONE_POD)
        world.ledger.hold("after", "net-1-plan")
        run = world.request("net", "net")
        pod = world.ledger.wait_held("after", f"{run}-plan")
        namespace.kubectl("exec", pod, "-c", "runner", "--", "sh", "-c", "echo '# more' >> $HOME/work/source/main.tf")
        world.ledger.let_go("after", f"{run}-plan")
        assert world.finish(run)["reason"] == "Applied"
        assert "dayfly: the source is fetched again: the plan changed files of it" in home.dayfly("logs", run).stdout
        assert jobs(namespace) == [f"{run}-plan"]


def test_a_plan_without_changes_ends_the_pod(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        world.executor("net", SMALL, placement=ONE_POD)
        world.run("net")
        assert world.run("net")["run"]["status"]["reason"] == "NoChanges"
        wait_over(namespace, "net-2-plan")
        assert jobs(namespace) == ["net-1-plan", "net-2-plan"]


def test_a_plan_that_failed_ends_the_pod(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        world.executor("net", 'resource "terraform_data" "x" { input = nothing }\n', placement=ONE_POD)
        assert world.ended(world.ask("net"))["reason"] == "PlanFailed"
        namespace.wait("job", "net-1-plan", lambda found: found.get("status", {}).get("failed"))
        assert jobs(namespace) == ["net-1-plan"]


def test_a_run_that_waits_for_an_approval_has_two_jobs(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        world.executor("net", SMALL, placement=ONE_POD)
        status, _, body = world.server.request("POST", "/v1/executors/net/runs", {"action": "provision"},
                                               {"Authorization": f"Bearer {home.env['DAYFLY_TOKEN']}"})
        assert status == 201, body
        run = json.loads(body)["metadata"]["name"]
        wait_for("the approval", lambda: world.document("runs", run)["status"]["phase"] == "WaitingApproval")
        wait_over(namespace, f"{run}-plan")
        home.dayfly("approve", run)
        assert world.ended(run)["reason"] == "Applied"
        assert jobs(namespace) == [f"{run}-apply", f"{run}-plan"]
        assert "hostUid" not in step(world, f"{run}-apply")["status"]["engineRef"]


# name: (reason, what does it, does tofu write its state?)
ENDS = {
    "delete-pod": ("PodDeleted", delete("pod"), True),
    "kill-pod": ("PodDeleted", delete("pod", "--force", "--grace-period=0"), False),
    "delete-job": ("JobDeleted", delete("job"), True),
    "eviction": ("Evicted", evict, True),
    "kill-runner": ("RunnerKilled", kill_runner, False),
    "deadline": ("DeadlineExceeded", limit("job"), True),
}


def test_an_apply_whose_pod_ends_says_by_what_and_keeps_its_state(home, namespace, tofu, tmp_path):
    with Pods(home, namespace, tofu) as world:
        mids = {name: Mid(world, tmp_path, name, placement=ONE_POD, pod_of="plan") for name in ENDS}
        for name, mid in mids.items():
            mid.wait_middle()
            ENDS[name][1](world, mid)
        for name, mid in mids.items():
            status = world.ended(mid.run)
            apply = step(world, f"{mid.run}-apply")["status"]
            listed = {i["address"] for i in apply.get("unrecorded", {}).get("items", [])}
            assert (status["phase"], status["reason"]) == ("Failed", ENDS[name][0]), (name, status)
            assert step(world, f"{mid.run}-plan")["status"]["reason"] == "Planned"
            assert "terraform_data.first" in {*mid.state(), *listed}, name
            assert not ENDS[name][2] or "terraform_data.first" in mid.state(), name
            mid.go()
            assert mid.starts() == 1
            assert world.run(name)["run"]["status"]["reason"] == "Applied"  # the lock is released
            assert mid.starts() == 2, name
        assert not [name for name in jobs(namespace) if name.endswith("-apply")]


def test_a_spawner_that_is_killed_in_mid_apply_finds_the_apply_in_its_pod(home, namespace, tofu, tmp_path):
    with Pods(home, namespace, tofu) as world:
        mid = Mid(world, tmp_path, "net", placement=ONE_POD, pod_of="plan")
        mid.wait_middle()
        world.server.listen = world.server.url.partition("://")[2]  # pods know no other
        world.server.kill()
        world.start()
        mid.go()
        assert world.ended(mid.run)["reason"] == "Applied"
        assert mid.starts() == 1
        assert_same_pod(world, mid.run)


def test_spawners_that_are_killed_around_the_apply_start_it_once(home, namespace, tofu):
    with World(home, namespace, tofu, config={"limits": {"steps": 2}}) as world:
        names = [f"net{n}" for n in range(4)]
        for name in names:
            world.make(name, placement=ONE_POD)
        runs = [world.request(name, name) for name in names]

        def is_planned(name):
            status, task = world.ask("GET", f"/v1/taskactions/{name}-1-plan")
            return status == 200 and task["status"].get("reason") == "Planned"
        for name in names:
            wait_for(f"the plan of {name}", lambda name=name: is_planned(name))
            world.server.kill()
        for run in runs:
            assert world.finish(run)["reason"] == "Applied"
        starts = world.ledger.starts()
        for name in names:
            applies = [n for (verb, job), n in starts.items() if verb == "apply" and job.startswith(f"{name}-1-")]
            assert applies == [1] and world.resources(name) == ["first", "second"], starts
        world.check_nothing_left(names)


def test_a_cancel_in_mid_apply_reaches_the_apply(home, namespace, tofu, tmp_path):
    with Pods(home, namespace, tofu) as world:
        mid = Mid(world, tmp_path, "net", placement=ONE_POD, pod_of="plan")
        mid.wait_middle()
        home.dayfly("cancel", mid.run)
        status = world.ended(mid.run)
        assert (status["phase"], status["reason"]) == ("Canceled", "Canceled"), status
        assert "terraform_data.first" in mid.state()
        assert home.dayfly("logs", mid.run).stdout.count("Interrupt received") == 1
        namespace.wait_gone("job", mid.job)
        assert not pods(namespace)
        mid.go()
        assert mid.starts() == 1


class Runner:
    """Plays the runner of a plan, in a pod that stays pending."""

    MINE, OTHER = {"claimId": "a" * 32}, {"claimId": "b" * 32}

    def __init__(self, world):
        self.world = world
        world.executor("net", SMALL, placement={"nodeSelector": {"disk": "nowhere"}, **ONE_POD})
        self.run = world.ask("net")
        self.pod = world.wait_pod(f"{self.run}-plan")["metadata"]["name"]
        self.plan = step(world, f"{self.run}-plan")["metadata"]["uid"]
        self.token = world.namespace.pod_token(self.pod, f"dayfly/{self.plan}")
        self.document = wait_for("the claim", self.claim_plan)
        result = {"exitCode": 0, "reason": "Planned", "message": "", "hasChanges": True}
        assert self.ask("POST", f"{self.plan}/result", self.document["stepToken"], result)[0] == 200
        wait_for("the offer", self.offered)
        self.apply = step(world, f"{self.run}-apply")["metadata"]["uid"]

    def ask(self, method, path, token, body=None):
        """(status, document)"""
        status, _, answer = self.world.server.request(method, f"/v1/steps/{path}", body, {"Authorization": f"Bearer {token}"})
        return status, json.loads(answer) if answer else None

    def claim_plan(self):
        status, document = self.ask("POST", f"{self.plan}/claim", self.token, self.MINE)
        return document if status == 200 else None

    def offered(self):
        status, _, body = self.world.server.request("GET", f"/v1/taskactions/{self.run}-apply", None,
                                                    {"Authorization": f"Bearer {self.world.home.env['DAYFLY_TOKEN']}"})
        return status == 200 and json.loads(body)["status"].get("engineRef", {}).get("hostUid") == self.plan

    def next(self):
        """What the runner of the plan hears when it asks for its next step."""
        return self.world.server.request("POST", f"/v1/runners/{self.plan}/claim", self.MINE, {"Authorization": f"Bearer {self.token}"})[0]

    def claim_apply(self, claim, token=None):
        return self.ask("POST", f"{self.apply}/claim", token or self.token, claim)[0]


def test_an_apply_whose_pod_is_gone_before_it_began_gets_a_job_of_its_own(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        runner = Runner(world)
        apply = f"{runner.run}-apply"
        assert runner.document["keepsPodFor"]["taskAction"] == apply
        namespace.kubectl("delete", "pod", runner.pod, "--force", "--grace-period=0")
        own = world.wait_pod(apply)["metadata"]["name"]
        assert runner.claim_apply(runner.MINE) == 401
        assert runner.next() in (401, 410)  # the pod is gone
        wait_for("the new Job to be recorded", lambda: step(world, apply)["status"]["engineRef"].get("name") == apply)
        fresh = namespace.pod_token(own, f"dayfly/{runner.apply}")
        assert runner.claim_apply(runner.OTHER, fresh) == 200
        assert "systemFailures" not in step(world, apply)["status"]


def test_an_offer_outlives_its_spawner_and_is_for_the_runner_of_the_plan_alone(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        runner = Runner(world)
        world.server.kill()
        world.start()
        assert runner.claim_apply(runner.OTHER) == 401  # code of the module that found the token
        assert runner.claim_apply(runner.MINE, runner.document["stepToken"]) == 401
        assert [runner.next() for _ in range(2)] == [200, 200]  # the first answer may have been lost
        assert jobs(namespace) == [f"{runner.run}-plan"]
