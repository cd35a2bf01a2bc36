"""Completion in real shells on real terminals: what is typed, a tab, and what the shell makes of it."""

import shutil
import socket

import pytest

from lib import dayfly
from lib.commands import EXECUTOR, HELLO, Terminal

# In each shell `dayfly` prints its words instead of doing anything; completion has the real one.
SETUP = {
    "bash": """
cd; PS1='ready> '; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; bind 'set show-all-if-ambiguous off'
source <(dayfly completion bash)
dayfly() { if [[ $1 == __complete ]]; then command dayfly "$@"; else echo "<<$*>>"; fi; }
""",
    "zsh": """
cd; PROMPT='ready> '; setopt no_beep; unsetopt zle_bracketed_paste 2>/dev/null; unset zle_bracketed_paste
autoload -Uz compinit; compinit -u -D
source <(dayfly completion zsh)
dayfly() { if [[ $1 == __complete ]]; then command dayfly "$@"; else print -r -- "<<$*>>"; fi; }
""",
    "fish": """
cd; function fish_prompt; echo 'ready> '; end; set -g fish_greeting ''; set -g fish_autosuggestion_enabled 0
dayfly completion fish | source
function dayfly; if test "$argv[1]" = __complete; command dayfly $argv; else; echo "<<$argv>>"; end; end
""",
}
START = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"], "fish": ["-N", "-i"]}


class Shell:
    """An interactive shell with the completion of dayfly."""

    def __init__(self, home, name):
        path = shutil.which("bash") if name == "bash" else dayfly.tool(name)
        home.env["PATH"] = f"{dayfly.BUILD}:{home.env['PATH']}"
        home.env["TERM"] = "dumb" if name != "fish" else "xterm"
        self.terminal = Terminal(home, path, *START[name])
        for line in SETUP[name].strip().splitlines():
            self.terminal.type(line + "\r")
        self.turns = 0

    def run(self, typed):
        """Types a line with tabs in it; the words that dayfly was given."""
        self.turns += 1
        before = len(self.terminal.shown)
        mark = f"turn-{self.turns}"
        self.terminal.type(f"{typed} {mark}\r")

        def answered():
            assert self.terminal.read(), self.terminal.shown
            text = self.terminal.shown[before:]
            end = text.find(f"{mark}>>")
            return text[text.rfind("<<", 0, end) + 2:end].split() if end >= 0 else None
        return dayfly.wait_for(f"an answer to {typed!r}", answered)

    def end(self):
        self.terminal.type("\x15exit\r")
        self.terminal.end()


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request, home):
    running = Shell(home, request.param)
    yield running
    running.end()


def executors(home):
    module = home.module("hello", HELLO)
    home.dayfly("create", "-f", "-", input="---".join(
        EXECUTOR.format(name=name, module=module, runtime=home.runtime, guests=1) for name in ("one", "two", "three")))
    home.dayfly("run", "two", "--action", "dry-run")


def test_commands_options_and_values(shell):
    assert shell.run("dayfly compl\tbash") == ["completion", "bash"]
    assert shell.run("dayfly secret se\tdb") == ["secret", "set", "db"]
    assert shell.run("dayfly run x --auto-app\t") == ["run", "x", "--auto-approve"]
    assert shell.run("dayfly run x --action dry\t") == ["run", "x", "--action", "dry-run"]
    assert shell.run("dayfly get runs --output=na\t") == ["get", "runs", "--output=name"]
    assert shell.run("dayfly get runs -o wi\t") == ["get", "runs", "-o", "wide"]
    assert shell.run("dayfly get taska\t") == ["get", "taskactions"]
    assert shell.run("dayfly get runs --state Succ\t") == ["get", "runs", "--state", "Succeeded"]
    assert shell.run("dayfly get executors --sort-by last\t") == ["get", "executors", "--sort-by", "last-run"]


def test_names_come_from_the_service_that_runs(home, server, request):
    executors(home)
    for name in START:
        shell = Shell(home, name)
        assert shell.run("dayfly outputs th\t") == ["outputs", "three"], name
        assert shell.run("dayfly get executors one tw\t") == ["get", "executors", "one", "two"], name
        assert shell.run("dayfly describe run/tw\t") == ["describe", "run/two-1"], name
        assert shell.run("dayfly approve tw\t") == ["approve", "two-1"], name
        assert shell.run("dayfly get runs --executor th\t") == ["get", "runs", "--executor", "three"], name
        assert shell.run("dayfly delete one th\t") == ["delete", "one", "three"], name
        shell.end()


def test_files_and_directories(home, shell):
    (home.directory / "my document.yaml").touch()
    (home.directory / "net.yaml").touch()
    (home.directory / "modules").mkdir()
    assert shell.run("dayfly apply -f ne\t") == ["apply", "-f", "net.yaml"]
    assert shell.run("dayfly apply -f my\t") == ["apply", "-f", "my", "document.yaml"]
    assert shell.run("dayfly run ./mod\t") in (["run", "./modules/"], ["run", "./modules"])


def offered(home, *words, **kwargs):
    """What the program offers to the shells' scripts."""
    result = home.dayfly("__complete", *words, **kwargs)
    assert result.stderr == ""
    return [line.split("\t")[0] for line in result.stdout.splitlines()]


def test_no_service_is_started_for_names(home):
    assert offered(home, "outputs", "") == [":none"]
    assert not home.state.exists()
    executors(home)
    lock = home.state / "lock"
    before = (lock.read_bytes(), lock.stat().st_mtime_ns)
    assert offered(home, "outputs", "") == [":none"]
    assert (lock.read_bytes(), lock.stat().st_mtime_ns) == before


def test_a_service_that_is_away_or_silent_is_no_trouble(home):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        result = home.dayfly("__complete", "why", "", env={"DAYFLY_SERVER": f"http://127.0.0.1:{port}"})
        assert result.stderr == "" and "net" not in result.stdout
    assert "taskaction/" in offered(home, "why", "", env={"DAYFLY_SERVER": f"http://127.0.0.1:{port}"})


def test_what_makes_no_sense_offers_nothing(home):
    for words in ([""], ["-"], ["nonsense", ""], ["state", "nonsense", ""], ["get", "nonsense/x"], ["--server"],
                  ["--server", ""], ["get", "--", "-"], ["get", "--state", "a,b"], ["run", "--output=x=y"]):
        assert offered(home, *words)[-1] in (":none", ":files")
    assert offered(home) == []


def test_every_command_and_every_option_is_offered(home):
    first = offered(home, "")
    groups = {line.split()[0] for line in home.dayfly("help").stdout.split("Commands:\n")[1].split("\n\n")[0].splitlines()}
    assert set(first) - {":none"} == groups
    assert {"rollback", "push-errored", "unlock"} <= set(offered(home, "state", ""))
    assert {"--auto-approve", "--var-file", "--server"} <= set(offered(home, "run", "-"))
    assert offered(home, "run", "--action", "d") == ["dry-run", "destroy", ":none"]
    assert offered(home, "run", "--var-file=") == [":files"]
    assert offered(home, "--data-directory", "") == [":dirs"]
    assert offered(home, "token-file", "create", "--role", "a") == ["admin", ":none"]
    assert offered(home, "completion", "") == ["bash", "zsh", "fish", ":none"]
    assert "run" in offered(home, "help", "r")
