"""The parts of `make bench` that are `make check` itself, on a clean clone: half an hour each."""

import os
import pathlib
import re
import subprocess
import sys
import time

from lib import dayfly as d


def environment(cold, work):
    """That of somebody who has just cloned; cold: with nothing that was built or fetched before but the packages."""
    ours = ("DAYFLY_", "MAKE", "MFLAGS", "GO")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**env, "XDG_CACHE_HOME": str(work / "cache"), "GOPATH": str(work / "go")} if cold else env


def minutes(row, work, cold):
    work = pathlib.Path(work)
    subprocess.run(["git", "clone", "--quiet", str(d.ROOT), str(work / "dayfly")], check=True)
    began = time.monotonic()
    said = ""
    with subprocess.Popen(["make", "check"], cwd=work / "dayfly", env=environment(cold, work), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as check:
        for line in check.stdout:
            print(line, end="", file=sys.stderr, flush=True)
            said += line
    took = (time.monotonic() - began) / 60
    sums = re.findall(r"^\d+ passed, \d+ failed.*$", said, re.M) or ["it came to no end"]
    if cold:  # Go keeps its modules without the right to write
        subprocess.run(["chmod", "-R", "u+w", str(work)], check=False)
    limit = 25 if cold else 12
    what = "`make check`, clean clone, " + ("nothing built before" if cold else "test tools built before")
    row(what, f"{took:.1f} min ({sums[-1]})", f"<= {limit} min", check.returncode == 0 and took <= limit)


def warm(row, _, work):
    minutes(row, work, cold=False)


def cold(row, _, work):
    minutes(row, work, cold=True)


PARTS = {"check-warm": warm, "check-cold": cold}
