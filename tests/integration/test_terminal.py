"""What a person sees on a terminal, and what a pipe gets: real programs on real terminals."""

import os
import re
import signal

import pytest

from lib import dayfly
from lib.commands import HELLO, on_terminal

BOLD, RED, GREEN, YELLOW, RESET = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"
CHANGING = """
variable "text" { default = "a\\n- b\\n+ c\\n" }
variable "again" { default = "one" }
resource "terraform_data" "text" { input = var.text }
resource "terraform_data" "again" {
  input            = "x"
  triggers_replace = var.again
}
output "text" { value = var.text }
"""


def colors(home):
    del home.env["NO_COLOR"]
    return home


# ---- colours --------------------------------------------------------------------------------------------------------


def test_a_plan_has_the_tools_colours_on_a_terminal_and_a_pipe_has_none(either_home):
    home = colors(either_home)
    module = home.module("net", CHANGING)
    home.dayfly("run", module, "--auto-approve")
    changes = ("-var", "again=two", "-var", "text=a\n- z\n+ c\n")
    terminal = on_terminal(home, "plan", module, *changes)
    assert terminal.end() == 0, terminal.shown
    for line in (f"{BOLD}  # terraform_data.text{RESET} will be updated in-place",
                 f"{BOLD}  # terraform_data.again{RESET} must be {BOLD}{RED}replaced{RESET}",
                 f"{RED}-{RESET}/{GREEN}+{RESET} resource \"terraform_data\" \"again\" {{",
                 f"  {YELLOW}~{RESET} resource \"terraform_data\" \"text\" {{",
                 f"\"one\" {YELLOW}->{RESET} \"two\"", f"{BOLD}Plan:{RESET} 1 to add, 1 to change, 1 to destroy."):
        assert line in terminal.shown, f"{line!r} is not in {terminal.shown!r}"
    # The text of the module is no change where only its neighbour is one.
    assert f"{GREEN}+{RESET} c\r" not in terminal.shown
    for piped in (home.dayfly("plan", module, *changes).stdout, home.dayfly("logs", "net-2").stdout,
                  home.dayfly("plan", module, *changes, "-o", "json").stdout):
        assert "\x1b" not in piped


def test_no_color_takes_every_colour_away_but_not_the_status_line(home):
    module = colors(home).module("hello", HELLO)
    for option in ("--no-color", "-no-color"):
        terminal = on_terminal(home, "plan", module, option)
        assert terminal.end() == 0
        assert not re.search("\x1b\\[[0-9;]*m", terminal.shown), terminal.shown


def test_an_error_is_red_on_a_terminal_and_so_is_a_stored_log(home):
    module = colors(home).module("broken", 'output "x" { value = nonsense.y }\n')
    terminal = on_terminal(home, "run", module)
    assert terminal.end() == 1
    assert f"{BOLD}{RED}Error: {RESET}{BOLD}Reference to undeclared resource" in terminal.shown
    terminal = on_terminal(home, "logs", "broken-1")
    assert terminal.end() == 0 and f"{BOLD}{RED}Error: " in terminal.shown


def test_colours_do_not_let_control_characters_through(home):
    module = colors(home).module("evil", r"""
resource "terraform_data" "evil" {
  provisioner "local-exec" { command = "printf 'Error: \\033[2Jy\\n+ x\\033]0;t\\007\\n'" }
}""")
    terminal = on_terminal(home, "run", module, "--auto-approve")
    assert terminal.end() == 0
    assert "\x1b[2J" not in terminal.shown and "\x1b]0;" not in terminal.shown and "^[[2Jy" in terminal.shown


# ---- nothing twice --------------------------------------------------------------------------------------------------


def count(text, words):
    return len(re.findall(words, text))


def test_a_pipe_gets_each_figure_and_each_output_once(either_home):
    module = either_home.module("hello", HELLO)
    text = either_home.dayfly("run", module, "--auto-approve").stdout
    for words in ("3 to add", "3 added", r"\nOutputs:\n", r"(?m)^greeting = ", r"(?m)^door_code = ", "hello-1: Succeeded"):
        assert count(text, words) == 1, (words, text)
    assert "Plan to create" not in text and "Outputs: " not in text
    text = either_home.dayfly("run", module, "--auto-approve").stdout
    for words in (r"(?m)^greeting = ", r"(?m)^Outputs:$", "hello-2: Succeeded"):
        assert count(text, words) == 1, (words, text)


def test_a_plan_without_changes_says_so_once(either_home):
    module = either_home.module("hello", HELLO)
    either_home.dayfly("run", module, "--auto-approve")
    shown = either_home.dayfly("plan", module).stdout
    assert shown.count("No changes. Your infrastructure matches the configuration.") == 1, shown


def test_the_tools_error_is_said_once(either_home):
    module = either_home.module("partial", """
resource "terraform_data" "good" { input = "x" }
resource "terraform_data" "bad" {
  depends_on = [terraform_data.good]
  provisioner "local-exec" { command = "exit 7" }
}""")
    text = either_home.dayfly("run", module, "--auto-approve", code=2).stdout
    assert count(text, "local-exec provisioner error") == 1, text
    assert "partial-1: Failed" in text and "ApplyFailed" in text and "dayfly why partial-1" in text


def test_an_error_of_dayflys_own_is_said_once(home):
    document = home.directory / "nothing.yaml"
    document.write_text(f"""
apiVersion: dayfly.dev/v1alpha1
kind: Executor
metadata: {{name: lost}}
spec:
  source: {{url: "file://{home.directory}/nowhere", kind: directory}}
""")
    home.dayfly("create", "-f", document)
    text = home.dayfly("run", "lost", "--auto-approve", code=1).stdout
    assert count(text, f"(?m){home.directory}/nowhere.*No such file") == 1, text


# ---- the question ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "service"])
@pytest.mark.parametrize("by", ["ctrl-c", "SIGTERM", "SIGHUP"])
def test_an_interrupted_question_says_that_the_plan_is_gone(home, embedded, by):
    module = home.module("hello", HELLO)
    with dayfly.Server(home) if not embedded else open(os.devnull, encoding="ascii"):
        terminal = on_terminal(home, "run", module)
        terminal.expect("Only 'yes' is accepted:")
        if by == "ctrl-c":
            terminal.type("\x03")
        else:
            os.kill(terminal.pid, getattr(signal, by))
        assert terminal.end() == 1, terminal.shown
        assert "Canceled: the plan of hello-1 is discarded, nothing was changed." in terminal.shown
        assert "the tool is asked to end" not in terminal.shown, "no tool was at work"
        assert home.json("get", "run", "hello-1")["status"]["phase"] == "Canceled"
        home.dayfly("approve", "hello-1", code=1)


@pytest.mark.parametrize("answer", ["no\n", "\x04"], ids=["no", "end of input"])
def test_a_declined_question_says_that_the_plan_is_gone(home, answer):
    terminal = on_terminal(home, "run", home.module("hello", HELLO))
    terminal.expect("Only 'yes' is accepted:")
    terminal.type(answer)
    assert terminal.end() == 1, terminal.shown
    assert "Declined: the plan of hello-1 is discarded, nothing was changed." in terminal.shown
    assert home.json("get", "run", "hello-1")["status"]["phase"] == "Discarded"


def test_the_name_of_an_output_cannot_write_to_the_terminal(home):
    home.dayfly("create", "-f", "-", input='{"kind": "Executor", "metadata": {"name": "net"}, "spec": {"source": {"url": "file:///nowhere"}}}')
    state = '{"version": 4, "serial": 1, "lineage": "l", "resources": [], "outputs": {"\\u001b[2Jx": {"value": "v", "type": "string"}}}'
    home.dayfly("state", "push", "net", "-", input=state)
    assert "\x1b[2J" not in home.dayfly("outputs", "net").stdout
