"""The tables of docs/cli.md and docs/configuration.md: made from the rows of commands and keys."""

import subprocess

import pytest

from lib.dayfly import BUILD, ROOT


def tables(page):
    return subprocess.run([str(BUILD / "tools/doc_tables"), str(page)], capture_output=True, text=True)


@pytest.mark.parametrize("name", ["docs/cli.md", "docs/configuration.md"])
def test_the_tables_are_those_of_the_rows(name):
    made = tables(ROOT / name)
    assert made.returncode == 0, made.stderr
    assert made.stdout == (ROOT / name).read_text(), "run `make docs`"


@pytest.mark.parametrize("name, old, new", [
    ("configuration.md", "| `listen` | `127.0.0.1:8030` |", "| `listen` | `0.0.0.0:80` |"),
    ("configuration.md", "| `log.level` |", "| `log.colour` | | none |\n| `log.level` |"),
    ("cli.md", "| `version` | `-o, --output` | Show the version<br>", "| `version [NAME]` | `--all` | Show a version<br>"),
    ("cli.md", "| `state lock EXECUTOR`", "| `state close EXECUTOR`"),
    ("cli.md", "| `--limit NUMBER` | at most so many of each kind<br>", "| `--limit N` | so many<br>"),
])
def test_what_a_row_says_is_written_anew_and_the_rest_stays(tmp_path, name, old, new):
    page, text = tmp_path / name, (ROOT / "docs" / name).read_text()
    assert text.count(old) == 1
    page.write_text(text.replace(old, new))
    assert tables(page).stdout == text


@pytest.mark.parametrize("name, old, new, why", [
    ("configuration.md", "| `listen` |", "| `lister` |", "listen: write"),
    ("cli.md", " backup restore version ", " version ", "backup: is not in docs/cli.md"),
    ("cli.md", "<!-- options of run -->", "<!-- options of walk -->", "walk: is no command"),
])
def test_a_key_without_a_meaning_and_a_command_without_a_table_are_faults(tmp_path, name, old, new, why):
    page, text = tmp_path / name, (ROOT / "docs" / name).read_text()
    assert text.count(old) == 1
    page.write_text(text.replace(old, new))
    made = tables(page)
    assert made.returncode == 1 and why in made.stderr
