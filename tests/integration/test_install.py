"""`make install-programs`, the manual pages, the systemd unit and the Debian package."""

import os
import pathlib
import re
import subprocess

import pytest

from lib import dayfly

VERSION = (dayfly.ROOT / "VERSION").read_text().strip()


def run(*command, **kwargs):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DAYFLY_", "MAKE", "VARIANT"))}
    env["LC_ALL"] = "C.UTF-8"
    env.update(kwargs.pop("env", {}))
    done = subprocess.run(command, cwd=dayfly.ROOT, env=env, text=True, capture_output=True, **kwargs)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def files(below):
    return sorted(str(p.relative_to(below)) for p in below.rglob("*") if not p.is_dir())


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    where = tmp_path_factory.mktemp("man")
    run(str(dayfly.DAYFLY), "help", "--man", str(where))
    return where


def commands():
    text = run(str(dayfly.DAYFLY), "help")
    return re.findall(r"^  ([a-z]+(?: [a-z-]+)?)  ", text.split("Commands:")[1].split("\n\n")[0], re.M)


def test_every_command_has_a_manual_page_with_all_its_options(pages):
    assert len(commands()) > 20
    for command in commands():
        shown = run("mandoc", "-Tutf8", str(pages / f"dayfly-{command.replace(' ', '-')}.1"), env={"MANWIDTH": "200"})
        shown = re.sub(r".\x08", "", shown).replace("‐", "-")
        wanted = run(str(dayfly.DAYFLY), "help", *command.split())
        options = re.findall(r"^  (?:-\w,|   ) (--[a-z0-9-]+)", wanted, re.M)
        assert "--help" in options
        for option in options:
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", shown), f"{option} is not in the page of dayfly {command}"
        assert f"dayfly-{command.replace(' ', '-')}" in shown


def test_the_manual_pages_are_clean_and_the_first_one_names_all_others(pages):
    overview = (pages / "dayfly.1").read_text().replace("\\-", "-")
    for page in sorted(pages.glob("*.1")):
        found = subprocess.run(["mandoc", "-Tlint", "-Wwarning", str(page)], capture_output=True, text=True).stdout
        faults = [line for line in found.splitlines() if "missing date" not in line]
        assert not faults, "\n".join(faults)
        assert page.stem == "dayfly" or f"{page.stem} (1)" in overview


def test_what_is_installed_below_a_prefix_is_uninstalled_again(tmp_path):
    run("make", "-s", "install-programs", f"DESTDIR={tmp_path}", "PREFIX=/opt/df")
    there = files(tmp_path)
    for path in ("bin/dayfly", "bin/dayfly-runner", "bin/dayfly-platform", "share/man/man1/dayfly.1", "share/man/man1/dayfly-run.1",
                 "share/man/man1/dayfly-runner.1", "share/man/man1/dayfly-platform.1", "lib/systemd/system/dayfly.service", "share/doc/dayfly/dayfly.yaml",
                 "share/doc/dayfly/adopt.md",
                 "share/bash-completion/completions/dayfly", "share/zsh/site-functions/_dayfly",
                 "share/fish/vendor_completions.d/dayfly.fish"):
        assert f"opt/df/{path}" in there
    assert f"dayfly {VERSION}" in run(str(tmp_path / "opt/df/bin/dayfly"), "version")
    assert "ExecStart=/opt/df/bin/dayfly serve" in (tmp_path / "opt/df/lib/systemd/system/dayfly.service").read_text()
    run("make", "-s", "uninstall-programs", f"DESTDIR={tmp_path}", "PREFIX=/opt/df")
    assert list((tmp_path / "opt/df").iterdir()) == [], "nothing stays, not even a directory"


def test_uninstalling_leaves_the_files_of_others_and_the_directories_of_the_system(tmp_path):
    for prefix, kept in (("/opt/df", "share/man/man1/other.1"), ("/usr/local", "bin")):
        at = f"DESTDIR={tmp_path}", f"PREFIX={prefix}"
        run("make", "-s", "install-files", *at)
        where = tmp_path / prefix[1:] / kept
        if not where.is_dir():
            where.write_text("theirs")
        run("make", "-s", "uninstall-programs", *at)
        assert where.exists() and not (tmp_path / prefix[1:] / "share/doc/dayfly").exists()


def test_the_unit_is_valid_and_hardened(tmp_path):
    unit = tmp_path / "dayfly.service"
    unit.write_text((dayfly.ROOT / "packaging/dayfly.service").read_text().replace("@BINDIR@", str(dayfly.DAYFLY.parent)))
    assert "dayfly.service" not in run("systemd-analyze", "verify", "--man=no", str(unit))
    # 29: 2.9 of 10, where a unit without any setting has 9.6. What steps need for their walls is 0.7 of that.
    run("systemd-analyze", "security", "--offline=true", "--threshold=29", "--no-pager", str(unit))


def test_the_configuration_of_the_unit_is_one_that_the_service_takes(home, tmp_path):
    text = (dayfly.ROOT / "packaging/dayfly.yaml").read_text()
    for path in re.findall(r"/var/\S+", text):
        text = text.replace(path, str(tmp_path / pathlib.Path(path).name), 1)
    (tmp_path / "dayfly.yaml").write_text(text)
    done = subprocess.run([str(dayfly.DAYFLY), "doctor", "--config", str(tmp_path / "dayfly.yaml")], env=home.env,
                          capture_output=True, text=True)
    assert "[ok]   configuration" in done.stdout, done.stdout + done.stderr


def test_the_package_installs_runs_and_is_removed(tmp_path):
    made = run("make", "-s", "deb").splitlines()[-1]
    root = tmp_path / "root"
    (root / "var/lib/dpkg").mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    dpkg = ["dpkg", f"--root={root}", "--force-not-root", "--force-depends", "--force-script-chrootless", "--log=/dev/null"]
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    run(*dpkg, "--install", made, env={"PATH": path})
    assert run(str(root / "usr/bin/dayfly"), "version").startswith(f"dayfly {VERSION}")
    assert "ExecStart=/usr/bin/dayfly serve" in (root / "lib/systemd/system/dayfly.service").read_text()
    assert (root / "usr/share/man/man1/dayfly-run.1.gz").exists()
    config = root / "etc/dayfly/dayfly.yaml"
    assert config.read_text() == (dayfly.ROOT / "packaging/dayfly.yaml").read_text()
    depends = run("dpkg-deb", "--field", made, "Depends")
    for package in ("libc6", "libssl3", "libsqlite3-0", "git"):
        assert package in depends
    # A changed configuration survives a removal, and goes with a purge.
    config.write_text("listen: 127.0.0.1:9\n")
    run(*dpkg, "--remove", "dayfly", env={"PATH": path})
    assert not (root / "usr/bin/dayfly").exists() and config.read_text() == "listen: 127.0.0.1:9\n"
    run(*dpkg, "--purge", "dayfly", env={"PATH": path})
    assert not config.exists()


def symbols(path, *options):
    return run("nm", *options, str(path))


@pytest.mark.parametrize("program", ["dayfly", "dayfly-runner", "dayfly-platform"])
def test_the_programs_are_built_with_every_hardening_that_the_compiler_has(program):
    path = dayfly.ROOT / "build" / program
    header = run("readelf", "-hld", str(path))
    assert "DYN (Position-Independent Executable file)" in header
    assert "GNU_RELRO" in header and re.search(r"FLAGS_1.*\bNOW\b", header)
    assert re.search(r"GNU_STACK(?:\s+0x\w+){3}\s+0x\w+\s+0x\w+\s+RW ", header)
    imported = symbols(path, "-D")
    assert "__stack_chk_fail" in imported and "__memcpy_chk" in imported
    if "X86-64" in header:
        first = run("objdump", "-d", "--no-show-raw-insn", "--disassemble=main", str(path))
        assert "endbr64" in first.split("<main>:")[1].splitlines()[1]


@pytest.mark.parametrize("library", ["curl/lib/libcurl.a", "microhttpd/lib/libmicrohttpd.a", "hiredis/lib/libhiredis.a"])
def test_the_libraries_that_parse_the_network_are_hardened_too(library):
    archive = symbols(dayfly.ROOT / "build" / library)
    assert "__stack_chk_fail" in archive and re.search("__(memcpy|snprintf)_chk", archive)
