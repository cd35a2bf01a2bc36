"""What tests/style reads from objects and text: circles of calls, comments, runs of lines that occur twice, pages that
name what is gone."""

import sys

import pytest

from lib import dayfly

sys.path.insert(0, str(dayfly.ROOT / "tests"))

import house  # noqa: E402
import pages  # noqa: E402


@pytest.mark.parametrize("graph, expected", [
    ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
    ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [("a", "b")]),
    ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d"}}, [("a", "b", "c"), ("d", "e")]),
    ({"a": {"b", "c"}, "b": {"a"}, "c": {"a"}}, [("a", "b", "c")]),
])
def test_a_circle_is_the_files_that_reach_each_other(graph, expected):
    assert house.circles(graph) == expected


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree with one file, built."""
    monkeypatch.setattr(house, "ROOT", tmp_path)
    monkeypatch.setattr(house, "OBJECTS", tmp_path)
    monkeypatch.setattr(house, "sources", lambda *_: [house.pathlib.Path("spawner/store/a.c")])
    monkeypatch.setattr(house, "calls", lambda: {})
    (tmp_path / "spawner/store").mkdir(parents=True)
    (tmp_path / "spawner/store/a.c").write_text("int a;\n")
    (tmp_path / "spawner/store/a.o").write_text("")
    return tmp_path


def test_a_circle_of_calls_is_a_fault(tree, monkeypatch):
    files = [house.pathlib.Path("spawner/store") / name for name in ("a.c", "b.c")]
    monkeypatch.setattr(house, "calls", lambda: {files[0]: {files[1]}, files[1]: {files[0]}})
    assert list(house.circle_faults()) == ["spawner/store: a circle of calls between files: spawner/store/a.c spawner/store/b.c"]


def test_a_tree_that_is_not_built_is_a_fault_that_says_what_to_run(tree):
    (tree / "spawner/store/a.o").unlink()
    assert "run `make programs`" in "".join(house.circle_faults())


@pytest.fixture
def figures(tree, monkeypatch):
    """Faults of a tree with these functions of one caller and lines, beside a page that allows two and says 100 lines."""
    (tree / "figures.md").write_text(f"| {house.ONE_CALLER} | 2 |\n| all | 3 | 100 | 0 |\n")
    monkeypatch.setattr(house, "PAGE", tree / "figures.md")

    def faults(functions, lines):
        monkeypatch.setattr(house, "symbols", lambda *_: (dict.fromkeys(functions), {"b.c": {"one", "two", "three", "all"}, "c.c": {"all"}}))
        (tree / "spawner/store/a.c").write_text("int a;\n" * lines)
        (tree / "spawner/store/a.o").write_text("")
        return "\n".join(house.figure_faults())
    return faults


def test_figures_within_those_of_the_page_are_no_fault(figures):
    assert figures(["one", "two", "all", "unused"], 102) == figures([], 99) == ""


def test_one_more_function_with_one_caller_is_a_fault_that_says_what_to_do(figures):
    assert "3 public functions have exactly one calling file, and figures.md allows 2: make the new one static" in figures(["one", "two", "three"], 100)


def test_the_number_that_is_allowed_only_falls(figures):
    figures(["one", "two", "three"], 100)
    assert house.allowed_one_callers() == 2
    figures(["one"], 100)
    assert house.allowed_one_callers() == 1


@pytest.mark.parametrize("lines", [97, 103])
def test_a_page_of_another_house_is_a_fault(figures, lines):
    assert f"has 100 lines, and it has {lines}" in figures([], lines)


def test_comments_and_code_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(house, "ROOT", tmp_path)
    (tmp_path / "a.c").write_text("/* one\n\n   two */\nint a; /* code */\n/* c */ int b;\n// three\n\n")
    assert house.comment_lines("a.c") == (4, 2)


def test_a_run_of_six_lines_in_two_files_counts_in_both(tmp_path, monkeypatch):
    monkeypatch.setattr(house, "ROOT", tmp_path)
    same = [f"call({n});" for n in range(7)]
    (tmp_path / "a.c").write_text("\n".join(["{", *same[:3], "", "}", *same[3:], "one();"]))
    (tmp_path / "b.c").write_text("\n".join([*same, "two();"]))
    (tmp_path / "c.c").write_text("\n".join(same[:5]))
    assert house.duplicate_lines(["a.c", "b.c", "c.c"]) == 14


def test_a_page_that_names_what_is_gone_is_a_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "common").mkdir()
    (tmp_path / "common/here.c").write_text("")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.c").write_text("static void here(void **state)\n...\n    unit_test(here),\nstatic void unlisted(void **state)\n")
    (tmp_path / "tests/test_b.py").write_text("def test_here(home):\n")
    page = tmp_path / "page.md"
    page.write_text("`tests/test_a.c::here`, `tests/test_a.c::unlisted`, `tests/test_b.py::test_here`, `tests/test_b.py::test_gone`, "
                    "common/here.c, common/gone.c, tests/tools/get-*, `df_here()`, `df_gone()`, `struct df_lost`, `DF_HERE`,"
                    "`df_here()` in common/here.c")
    assert list(pages.gone(page, {"df_here", "DF_HERE"})) == [
        "page.md names common/gone.c, which is not there", "page.md names df_gone, which no source has",
        "page.md names df_lost, which no source has", "page.md names df_here in common/here.c, where it is not",
        "page.md names the test unlisted of tests/test_a.c, which is not there",
        "page.md names the test test_gone of tests/test_b.py, which is not there"]
