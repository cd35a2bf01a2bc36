"""`make demo`, as CI has it: no terminal, whatever tool is there."""

import pathlib

from lib import dayfly


def path_for(home):
    """Where the programs are; the demo prefers tofu, so a test with terraform must not offer it."""
    directories = home.env["PATH"].split(":")
    if home.runtime == "terraform":
        directories = [d for d in directories if not (pathlib.Path(d) / "tofu").exists()]
    return ":".join(directories)


def test_the_demo_shows_the_whole_job_and_cleans_up(either_home, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    result = either_home.run(dayfly.ROOT / "tests/demo", timeout=300,
                             env={"TMPDIR": str(temporary), "PATH": path_for(either_home)})
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{{name: {either_home.runtime}}}" in result.stdout
    assert "# Done:" in result.stdout
    assert "\x1b" not in result.stdout
    assert not list(temporary.iterdir()), "the demo left something behind"
