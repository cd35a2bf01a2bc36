"""Lists of 10,000 executors for people who may view one team's: pages of every filter, each followed to its end."""

import json
import pathlib
import random
import time

from lib import dayfly as d
from lib.oidc import Provider

EXECUTORS, TEAMS = 10_000, 50


def configuration(provider, tokens):
    grants = {"root": {"to": {"groups": ["platform"]}, "on": {"all": True}, "preset": "admin"},
              "team": {"to": {"groups": ["net-team"]}, "on": {"matchLabels": {"team": "t7"}}, "verbs": ["view", "plan"]},
              "call": {"to": {"users": [f"{provider.issuer}#ann"]}, "on": {"names": ["x1", "x2"]}, "preset": "approver"}}
    return json.dumps({"auth": {"oidc": {"issuer": provider.issuer, "audience": "dayfly"}, "grants": grants, "tokenFile": str(tokens)}})


def fill(server, module, admin, count):
    for n in range(count):
        body = {"metadata": {"name": f"x{n}", "labels": {"team": f"t{n % TEAMS}", "env": "prod" if n % 3 else "dev"}},
                "spec": {"source": {"url": f"file://{module}", "kind": "directory"}, "description": "one of many " * 5,
                         "variables": {f"v{i}": "x" * 20 for i in range(5)}}}
        status, _, answer = server.request("POST", "/v1/executors", body, admin)
        assert status == 201, (status, answer)


def question(dice):
    return dice.choice(["", "state=provision", "status=ready,done", "label=env=prod", "label=team=t7", "label=team=t8", "creator=boss", "namePrefix=x7",
                        "order=newest", "label=env in (dev)&state=provision", "state=destroyed"]).replace(" ", "%20")


def pages(server, bob, path, times):
    """The names on all pages; adds the milliseconds of each."""
    found, cursor = [], ""
    while cursor is not None:
        began = time.perf_counter()
        status, _, body = server.request("GET", f"/v1/executors?limit=100&{path}&cursor={cursor}" if cursor else f"/v1/executors?limit=100&{path}", None, bob)
        times.append((time.perf_counter() - began) * 1000)
        assert status == 200, (status, body)
        page = json.loads(body)
        found += [item["metadata"]["name"] for item in page["items"]]
        cursor = page.get("nextCursor")
    return found


def grants(row, quick, work):
    home, count = d.Home(pathlib.Path(work) / "home", d.tofu()), 1000 if quick else EXECUTORS
    tokens = home.directory / "tokens"
    boss = home.dayfly("token-file", "create", "--name", "boss", "--role", "admin", "--token-file", tokens).stdout.strip()
    people = {"bob": ("a grant by label", count // TEAMS), "ann": ("grants by label and by name", count // TEAMS + 2)}
    with Provider({name: {"groups": ["net-team"]} for name in people}) as provider, d.Server(home, config=configuration(provider, tokens)) as server:
        fill(server, home.module("m", 'output "x" {\n  value = 1\n}\n'), {"Authorization": f"Bearer {boss}", "Content-Type": "application/json"}, count)
        for name, (by, seen) in people.items():
            header, dice, times = {"Authorization": f"Bearer {provider.sign_in(name)}"}, random.Random(9), []
            assert len(pages(server, header, "", [])) == seen
            while len(times) < (100 if quick else 1000):
                pages(server, header, question(dice), times)
            times.sort()
            p99 = times[int(0.99 * len(times))]
            row(f"a filtered page of {count:,} executors for one team, {by}, p99", f"{p99:.1f} ms (p50 {times[len(times) // 2]:.1f}, n={len(times)})",
                "<= 30 ms", p99 <= 30)


PARTS = {"grants": grants}
