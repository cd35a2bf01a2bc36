"""Every command block of README.md and of docs/, typed into one shell on a terminal, as a reader would.

```sh blocks are typed. ```console blocks are not: they need a cloud, a cluster, root, or a service of the reader's.
"""

import os
import pty
import re
import select
import shutil
import socket
import subprocess
import time
import xml.dom.minidom

import pytest
import yaml

from lib import dayfly

QUESTION = b"Only 'yes' is accepted:"


# Pages whose ```sh blocks need a cluster; test_chart.py and test_manifests.py use those of docs/operator.md.
NEED_A_CLUSTER = {"docs/operator.md"}

# Its blocks begin with a module that has a state; test_adopt.py makes one and types them.
NEED_A_STATE = {"docs/adopt.md"}


def blocks(page="README.md", kind="sh"):
    return re.findall(rf"^```{kind}\n(.*?)^```$", (dayfly.ROOT / page).read_text(), re.M | re.S)


def pages():
    return ["README.md", *sorted(str(p.relative_to(dayfly.ROOT)) for p in (dayfly.ROOT / "docs").rglob("*.md"))]


def task_pages():
    return [page for page in pages()[1:] if blocks(page) and page not in NEED_A_CLUSTER | NEED_A_STATE]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def type_in(script, env, seconds, directory=dayfly.ROOT):
    """Runs a script in bash on a terminal, answering questions with yes; (exit code, what the screen showed)."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(directory)
        os.execvpe("bash", ["bash", "-eux", script], env)
    shown, answered, end = b"", 0, time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # the last process on the terminal has ended
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode(errors="replace")
            shown += piece
            if shown.count(QUESTION) > answered:
                answered += 1
                os.write(terminal, b"yes\n")
        raise AssertionError("the commands do not end:\n" + shown.decode(errors="replace")[-5000:])
    finally:
        os.close(terminal)


def test_every_command_block_does_what_it_says(home, tmp_path):
    found = blocks()
    assert len(found) >= 6, "README.md has lost its command blocks"
    script = "".join(found).replace("127.0.0.1:8030", f"127.0.0.1:{free_port()}")
    (tmp_path / "readme.sh").write_text(script)
    home.env["TERM"] = "xterm"
    # `make` finds here what was built once for this machine.
    home.env["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    before = set(dayfly.ROOT.glob("*.yaml"))
    code, shown = type_in(str(tmp_path / "readme.sh"), home.env, 900)
    for made in set(dayfly.ROOT.glob("*.yaml")) - before:
        made.unlink()
    assert code == 0, shown[-5000:]
    for text in ("Hello, world!", "hello-1: Succeeded", "net-1: Succeeded", "executor/net created",
                 "secret/greeting key name set", "# Done:", "job.batch/hello-1-apply", "pod/hello-1-plan-"):
        assert text in shown, f"{text!r} is not in:\n{shown[-5000:]}"
    assert "s3cret" not in shown.replace("echo s3cret", "")


@pytest.mark.parametrize("page", task_pages())
def test_the_commands_of_a_task_page_work(home, tmp_path, page):
    directory = tmp_path / "reader"
    shutil.copytree(dayfly.ROOT / "examples", directory / "examples")
    (directory / "page.sh").write_text("".join(blocks(page)).replace("127.0.0.1:8030", f"127.0.0.1:{free_port()}"))
    home.env |= {"TERM": "xterm", "PATH": f"{dayfly.DAYFLY.parent}:{home.env['PATH']}"}
    code, shown = type_in("page.sh", home.env, 300, directory)
    assert code == 0, shown[-5000:]
    for secret in ("wJalrXUtnFEMI/K7MDENG", "s3cret"):
        assert secret not in re.sub(r"^\++ .*$", "", shown, flags=re.M), f"{page} shows a secret"


def test_the_pages_for_tasks_are_executed():
    assert {"docs/ci.md", "docs/credentials.md", "docs/upkeep.md"} <= set(task_pages())


@pytest.mark.parametrize("page", pages())
def test_what_the_text_names_is_there(page):
    text = (dayfly.ROOT / page).read_text()
    for path in set(re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text)):
        assert ((dayfly.ROOT / page).parent / path).exists(), f"{page} names {path}"
    for path, anchor in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", text):
        target = (dayfly.ROOT / page).parent / path if path else dayfly.ROOT / page
        headings = re.findall(r"^#+ (.*)$", target.read_text(), re.M)
        anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
        assert anchor in anchors, f"{page} names {path}#{anchor}"


def options_of(command):
    shown = subprocess.run([str(dayfly.DAYFLY), "help", *command], capture_output=True, text=True)
    return set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*|-[a-z])\b", shown.stdout)) if shown.returncode == 0 else None


@pytest.mark.parametrize("page", pages())
def test_commands_and_options_of_the_text_exist(page):
    """In every block and every piece of code, also in those that are not executed."""
    text = (dayfly.ROOT / page).read_text()
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    code = blocks(page) + blocks(page, "console") + blocks(page, "yaml") + inline
    for line in "\n".join(code).replace("\\\n", " ").splitlines():
        for called in re.findall(r"(?:^\s*|[$(;|] ?|-- |- |: |&& |until )dayfly ((?:(?![|;&<>)]).)*)", line):
            words = [w for w in called.split() if re.fullmatch(r"[a-z][a-z-]*", w)]
            if called.startswith(("--", "-")) or not words or called.split()[0] != words[0]:
                continue
            options = options_of(words[:2]) if options_of(words[:2]) is not None else options_of(words[:1])
            if options is None:  # a command of another tool, which dayfly answers with its own
                answer = subprocess.run([str(dayfly.DAYFLY), *words[:2]], capture_output=True, text=True).stderr
                assert "unknown command" not in answer, f"{page}: dayfly {called}"
                continue
            for option in re.findall(r"(?<=\s)(--[a-z][a-z0-9-]*)", " " + called):
                assert option in options | {"--help"}, f"{page}: dayfly {called} has no {option}"


def test_the_pipelines_of_the_text_are_yaml():
    found = [yaml.safe_load(block) for block in blocks("docs/ci.md", "yaml")]
    assert len(found) == 2 and "jobs" in found[0] and "apply" in found[1]


def test_the_pictures_are_what_their_texts_say(tmp_path):
    pictures = dayfly.ROOT / "docs/pictures"
    for text in pictures.glob("*.txt"):
        subprocess.run([pictures / "draw", text, tmp_path / "drawn.svg"], check=True)
        assert (tmp_path / "drawn.svg").read_text() == text.with_suffix(".svg").read_text(), f"run docs/pictures/draw {text}"
    for picture in pictures.glob("*.svg"):
        xml.dom.minidom.parse(str(picture))
        assert picture.stat().st_size < 64 * 1024


def shown_in(picture):
    """The lines of a recorded terminal."""
    shown = xml.dom.minidom.parse(str(picture))
    return ["".join(n.data for n in walk(t)) for t in shown.getElementsByTagName("text")]


MACHINE = {"AWS_CA_BUNDLE": "/etc/ours.pem", "TF_VAR_name": "moon", "DAYFLY_SERVER": "http://127.0.0.1:1", "NO_COLOR": "1",
           "HTTPS_PROXY": "http://proxy.example:3128"}


def test_a_recording_shows_plan_question_apply_and_why_and_nothing_of_the_machine(home, tmp_path):
    subprocess.run([dayfly.ROOT / "docs/pictures/record", tmp_path / "demo.svg"], env={**home.env, **MACHINE}, check=True,
                   timeout=120)
    for picture in (tmp_path / "demo.svg", dayfly.ROOT / "docs/pictures/demo.svg"):
        assert picture.stat().st_size < 300_000
        lines = shown_in(picture)
        story = ["$ dayfly run examples/hello", "Plan: 3 to add", "Only 'yes' is accepted: yes", "3 added", "hello-1: Succeeded",
                 "The table has 20 places.", "$ dayfly why hello-2", "What to do: "]
        places = [next((n for n, line in enumerate(lines) if words in line), -1) for words in story]
        assert places[0] == 0 and places == sorted(places), list(zip(story, places))
        assert "What to do: " in lines[-1], "the screen at rest is not the end of it"
        for line in lines:
            assert not re.search(r"\b[A-Z]+_[A-Z_]+\b|passed from this shell|moon", line), line
            assert os.uname().nodename not in line.split() and str(dayfly.ROOT) not in line
            assert len(line) <= 100


def test_pictures_name_a_font_that_every_reader_has():
    for picture in (dayfly.ROOT / "docs/pictures").glob("*.svg"):
        fonts = re.findall(r"font: [^;]*", picture.read_text())
        assert fonts and all(f.endswith(("sans-serif", "monospace")) for f in fonts), picture


def walk(node):
    for child in node.childNodes:
        if child.nodeType == child.TEXT_NODE:
            yield child
        yield from walk(child)
