"""A plan and its apply in one dayfly-runner, as in a pod (placement.podPerStep: false), without a cluster: a small spawner plays
docs/step-protocol.md."""

import json
import os
import re

from . import dayfly, web
from .steps import Steps

# Without these even root may not write where nobody may, as the user of a pod.
AS_IN_A_POD = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()


class Played(web.Handler):
    """Answers for its owner's two steps."""

    def say(self, document, status=200):
        self.answer(status, json.dumps(document).encode(), Content_Type="application/json")

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass

    def do_POST(self):
        two, (uid, path, offset), body = self.server.owner.two, self.parts(), self.body()
        if path == "claim":
            uid = "apply" if self.path.startswith("/v1/runners/plan/") else uid
            two.claims.append(uid)
            return self.say(two.document(uid))
        if path.startswith("streams/"):
            stream = two.streams.setdefault((uid, path), bytearray())
            stream[offset:] = body
            return self.say({"offset": len(stream)})
        if path == "result":
            two.results[uid] = json.loads(body)
            return self.say({})
        return self.answer(204)

    def do_GET(self):
        two, (uid, path, _) = self.server.owner.two, self.parts()
        if path == "artifacts/plan":
            return self.answer(200, two.bundle)
        return self.say({"offset": len(two.streams.get((uid, path), b""))} if path.startswith("streams/") else {})

    def do_PUT(self):
        two, (_, path, _), body = self.server.owner.two, self.parts(), self.body()
        if path == "artifacts/plan":
            two.bundle = body
            two.meddle()
        return self.say({}, 201)

    def parts(self):
        """(uid, path, offset)"""
        uid, path, offset = re.fullmatch(r"/v1/(?:steps|runners)/(\w+)/([a-z/]+)(?:\?offset=(\d+))?", self.path).groups()
        return uid, path, int(offset or 0)


class TwoSteps(Steps):
    """meddling is a shell script: what code of the module leaves behind. It runs in the module's directory when the plan is stored;
    $STEP is the directory of the step."""

    def __init__(self, home, text, meddling="", **changes):
        super().__init__(home, text)
        self.claims, self.streams, self.results, self.bundle = [], {}, {}, b""
        self.meddling, self.changes, self.directory = meddling, changes, home.directory / "pod"

    def meddle(self):
        self.meddled = self.home.run("sh", "-e", "-c", self.meddling, cwd=self.directory / "work/source", env={"STEP": str(self.directory)})

    def document(self, uid, **_):
        if uid == "apply":
            self.plan_result = self.results["plan"]
        more = {"keepsPodFor": {"taskAction": "hello-1-apply"}} if uid == "plan" else {}
        return super().document(uid, uid=uid, stepToken="step", **more, **self.changes)

    def run(self, prefix=(), env=None):
        """Runs both; returns what the runner itself said."""
        token, handoff = self.home.directory / "token", self.home.directory / "handoff.json"
        token.write_text("claim")
        with web.Server(Played) as server:
            server.two = self
            (self.home.directory / "termination-log").touch()
            handoff.write_text(json.dumps({"server": server.url, "uid": "plan", "tokenFile": str(token),
                                           "terminationLog": str(self.home.directory / "termination-log")}))
            ended = self.home.run(*prefix, *AS_IN_A_POD, dayfly.RUNNER, "step", "--handoff-file", handoff,
                                  "--work-dir", self.directory, env=env)
        assert ended.returncode == 0 and self.results["plan"]["reason"] == "Planned", f"{self.results}\n{ended.stderr}"
        assert self.meddled.returncode == 0, self.meddled.stderr
        return ended.stderr

    def run_both(self):
        """Insists on an apply that followed; returns its log."""
        said = self.run()
        assert self.claims == ["plan", "apply"], said
        log = self.streams.get(("apply", "streams/log"), b"").decode()
        assert self.results["apply"]["reason"] == "Applied", f"{self.results['apply']}\n{log}\n{said}"
        return log
