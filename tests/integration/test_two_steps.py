"""The runner of a plan that runs the apply as well: what code of the plan's module leaves behind decides nothing about the apply."""

import os
import signal

import pytest

from lib import dayfly, providers
from lib.providers import PROVIDED, SOURCE, platform
from lib.steps import HELLO
from lib.tool_mirror import ToolMirror
from lib.two_steps import TwoSteps

PLUGIN = f".terraform/providers/{SOURCE}/1.0.0/{platform()}/terraform-provider-simple_v1.0.0"


def provided(home, meddling=""):
    """Two steps of a module whose provider `init` unpacks into the module's directory."""
    providers.packed(dayfly.tool("provider"), home.directory / "mirror")
    return TwoSteps(home, PROVIDED, meddling, providers={"filesystemMirror": str(home.directory / "mirror")})


def test_the_apply_takes_over_what_init_of_the_plan_installed(home):
    log = provided(home).run_both()
    assert "no init: what the plan's made is here (1 provider verified)" in log, log
    assert "fetched again" not in log and "Initializing" not in log, log


READS_ITSELF = """
resource "terraform_data" "all" {
  input = { for f in fileset(path.module, "**") : f => filesha256("${path.module}/${f}") }
}
"""


@pytest.mark.parametrize("more", ["", 'module "m" { source = "./m" }\n', PROVIDED])
def test_a_module_that_reads_its_own_directory_finds_the_same_in_its_apply(home, more):
    """Also what `init` makes there: the tool compares what the plan and the apply evaluate."""
    providers.packed(dayfly.tool("provider"), home.directory / "mirror")
    module = home.module("whole", READS_ITSELF + more)
    (module / "m").mkdir()
    (module / "m/main.tf").write_text("output \"x\" { value = 1 }\n")
    rc = home.directory / ".tofurc"
    rc.write_text('provider_installation {\n  filesystem_mirror { path = "%s/mirror" }\n}\n' % home.directory)
    log = home.dayfly("run", module, "--auto-approve").stdout
    assert "Apply complete" in log, log


@pytest.mark.parametrize("change,why", [
    (f"mv {PLUGIN} $STEP/x; printf '#!/bin/sh\\ntouch %s/ran\\nexec %s/x\\n' $STEP $STEP >{PLUGIN}; chmod 755 {PLUGIN}", "which the lock file does not name"),
    (f"rm {PLUGIN}", "has no files"),
    ("rm -r .terraform/providers", "is not in a cache or mirror here"),
    ("rm -r .terraform; ln -s /nowhere .terraform", "is not in a cache or mirror here"),
])
def test_a_provider_that_the_plan_changed_is_installed_again(home, change, why):
    two = provided(home, change)
    log = two.run_both()
    assert "dayfly: init again: " in log and why in log, log
    assert not (two.directory / "ran").exists() and two.resources() == {"r": "ok"}


@pytest.mark.parametrize("change", [
    "echo '# more' >>main.tf",
    "touch more; chmod 0555 .",
    "mkdir -p a/b; touch a/b/c; chmod 0555 a/b a .",
    "chmod 0 .",
    "chmod 0 main.tf",
])
def test_a_source_that_cannot_be_restored_is_fetched_again(home, change):
    log = TwoSteps(home, HELLO, change).run_both()
    assert "dayfly: the source is fetched again: " in log, log


def test_a_source_whose_git_would_run_a_program_of_the_plan_is_fetched_again(home):
    two = TwoSteps(home, HELLO, "git config core.fsmonitor /bin/evil; mkdir -p .git/hooks; touch .git/hooks/pre-commit")
    home.git(two.module, "init", "-q")
    home.git(two.module, "add", ".")
    home.git(two.module, "commit", "-qm", "all")
    two.changes["source"] = {"url": f"file://{two.module}", "kind": "git", "branch": "main"}
    log = two.run_both()
    assert "dayfly: the source is fetched again: the plan changed files of it" in log, log
    git = two.directory / "work/source/.git"
    assert "fsmonitor" not in (git / "config").read_text() and not (git / "hooks/pre-commit").exists()


def test_what_lies_in_the_place_of_a_directory_is_in_nobody_s_way(home):
    elsewhere = home.directory / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    two = TwoSteps(home, HELLO, f"cd ..; rm spool/log; mkfifo spool/log; for d in home fetch secret; do rm -r $d; ln -s {elsewhere} $d; done; "
                                "rm ../module; mkdir -p ../module/x")
    log = two.run_both()
    assert "dayfly: Applied" in log, log
    assert os.listdir(elsewhere) == ["kept"]


def test_a_source_behind_a_link_gets_a_pod_of_its_own(home):
    two = TwoSteps(home, HELLO, "cd ..; mv source other; ln -s other source")
    said = two.run()
    assert two.claims == ["plan"] and "no other step in this pod" in said, said


def test_a_tool_that_the_plan_put_into_the_cache_is_not_run(home, tofu):
    ran = home.directory / "ran"
    mirror = ToolMirror(home.directory / "releases", home.bin / "tofu")
    digest = mirror.add("1.9.5")
    tool = f"$STEP/tools/{digest}/tofu"
    two = TwoSteps(home, HELLO, f"rm {tool} {tool}.sha256; cp {home.directory}/evil {tool}",
                   runtime={"name": "opentofu", "version": "1.9.5"},
                   tools={"cacheDirectory": str(home.directory / "pod/tools"),
                          "index": {"opentofu": (mirror.directory / "index.json").as_uri()}})
    evil = home.directory / "evil"
    evil.write_text(f'#!/bin/sh\ntouch {ran}\n[ "$1" = version ] && {{ echo OpenTofu v1.9.5; exit; }}\nexec {tofu} "$@"\n')
    evil.chmod(0o755)
    two.run_both()
    assert not ran.exists()


class Leaver(TwoSteps):
    """Two steps whose plan leaves a process behind."""

    def __init__(self, home):
        super().__init__(home, HELLO)
        self.left, tool = self.directory / "left", home.bin / "tofu"
        real = tool.resolve()
        tool.unlink()
        tool.write_text(f"""#!/bin/sh
[ "$1" != plan ] || setsid sh -c 'echo $$ >{self.left}; exec sleep 1000' >/dev/null 2>&1 &
exec {real} "$@"
""")
        tool.chmod(0o755)

    def pid(self):
        return int(self.left.read_text())


def test_a_process_that_the_plan_left_behind_ends_before_the_apply_begins(home):
    two = Leaver(home)
    two.run_both()
    assert not dayfly.alive(two.pid())


def test_the_apply_does_not_follow_a_process_that_cannot_be_ended(home):
    two = Leaver(home)
    two.run(prefix=("strace", "-o", "/dev/null", "-e", "trace=kill", "-e", "inject=kill:error=EPERM"),
            env={"ASAN_OPTIONS": "detect_leaks=0"})  # which does not work under strace
    try:
        assert dayfly.alive(two.pid()) and two.claims == ["plan"]
    finally:
        os.kill(two.pid(), signal.SIGKILL)
