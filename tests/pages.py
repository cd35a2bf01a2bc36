"""Pages for contributors, beside the tree: a page must not name a file, a function or a test that is gone, an index must
name every file."""

import pathlib
import re

import house

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ["CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md", "docs/glossary.md", "docs/internals/*.md", "tests/unit/README.md"]
SNAPSHOT = "figures.md"  # written by tests/style --figures, true for its day
FILE = re.compile(r"(?<![\w./-])(?:common|runner|spawner|tests|tools|docs|rbac|images|charts|packaging)/[\w./-]*\w(?![\w./-]*[*{])")
NAME = re.compile(r"`(?:struct )?(\w+)\(\)|`(?:struct )?(df_\w+|DF_\w+)`")

NAME_IN_FILE = re.compile(r"`(?:struct )?(\w+)(?:\(\))?`\)? (?:in |\()`?((?:common|runner|spawner)/[\w./]+\.[ch])")

TEST = re.compile(r"(tests/[\w/]+\.(?:c|py))::(\w+)")


def faults():
    source = "".join((ROOT / path).read_text() for path in house.sources(".c", ".h", rooms=[*house.PRODUCT, "tests"]))
    known = set(re.findall(r"\w+", source))
    for pattern in PAGES:
        for page in sorted(ROOT.glob(pattern)):
            if page.name != SNAPSHOT:
                yield from gone(page, known)
    index = ROOT / "tests/unit/README.md"
    for helper in sorted((ROOT / "tests/unit").glob("*.h")):
        if f"`{helper.name}`" not in index.read_text():
            yield f"tests/unit/README.md does not say what {helper.name} is for"


def gone(page, known):
    """What the page names and nobody has."""
    text = page.read_text()
    for named in sorted(set(FILE.findall(text))):
        if not (ROOT / named).exists():
            yield f"{page.relative_to(ROOT)} names {named}, which is not there"
    for named in sorted({call or word for call, word in NAME.findall(text)}):
        if named not in known:
            yield f"{page.relative_to(ROOT)} names {named}, which no source has"
    for named, path in sorted(set(NAME_IN_FILE.findall(text))):
        if named in known and (ROOT / path).exists() and not re.search(rf"\b{named}\b", (ROOT / path).read_text()):
            yield f"{page.relative_to(ROOT)} names {named} in {path}, where it is not"
    for path, test in sorted(set(TEST.findall(text))):
        if (ROOT / path).exists() and not is_test((ROOT / path).read_text(), test):
            yield f"{page.relative_to(ROOT)} names the test {test} of {path}, which is not there"


def is_test(source, name):
    """Is it a test of pytest, or one of C that main() has in its list?"""
    return re.search(rf"^def {name}\(", source, re.M) or re.search(rf"\w\({name}\b", source)
