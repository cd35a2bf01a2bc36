"""The house in figures: sizes of functions and files, circles of calls between files, comments, duplicates.

tests/style asks circle_faults() and figure_faults() each time and write_figures() with --figures. Calls are read from the symbols of
build/obj (nm), functions from universal-ctags, everything else from the text.
"""

import collections
import datetime
import math
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
OBJECTS = ROOT / "build" / "obj"
PAGE = ROOT / "docs" / "internals" / "figures.md"
PRODUCT = ("common", "runner", "spawner")
WINDOW = 6  # lines: a shorter run of equal lines is how C looks
STALE = 0.02  # of the lines of the product: beyond that the page is of another house
ONE_CALLER = "public functions with exactly one calling file, at most"
ONE_CALLER_ROW, LINES_ROW = rf"^\| {ONE_CALLER} \| ([\d,]+) \|", r"^\| all \| [\d,]+ \| ([\d,]+) \|"


def sources(*suffixes, rooms=PRODUCT):
    """The tracked C files of some rooms, relative to the root, sorted."""
    out = subprocess.run(["git", "ls-files", "--", *rooms], cwd=ROOT, check=True, capture_output=True, text=True)
    paths = [pathlib.Path(line) for line in out.stdout.splitlines()]
    return sorted(p for p in paths if p.suffix in suffixes and (ROOT / p).is_file())


def built():
    """The sources of the programs; what stands in for a part that is left out is built without that part alone."""
    return [source for source in sources(".c") if "without" not in source.parts]


def object_of(source):
    return OBJECTS / source.with_suffix(".o")


def not_built():
    """The sources whose object is missing or older than they are."""
    def is_old(source):
        made = object_of(source)
        return not made.exists() or made.stat().st_mtime < (ROOT / source).stat().st_mtime
    return [source for source in built() if is_old(source)]


def symbols(kinds="TDBRV"):
    """({symbol: the file that defines it}, {file: the symbols that it needs}), from nm.

    Data counts as well: a table of commands that names its handlers calls them. kinds: of what is defined; "T": functions.
    """
    files = {str(object_of(source)): source for source in built()}
    out = subprocess.run(["nm", "-A", *files], check=True, capture_output=True, text=True).stdout
    defined, needed = {}, collections.defaultdict(set)
    for line in out.splitlines():
        name, rest = line.split(":", 1)
        kind, symbol = rest.split()[-2:]
        if kind in kinds:
            defined[symbol] = files[name]
        elif kind == "U":
            needed[files[name]].add(symbol)
    return defined, needed


def calls():
    """{file: the other product files that it calls}."""
    defined, needed = symbols()
    return {source: {defined[s] for s in needed[source] if s in defined} - {source} for source in built()}


def circles(graph):
    """Groups of files of which each one reaches each other one, sorted: the strongly connected components
    with more than one member. A file belongs to the circle of all that it reaches and that reach it."""
    reached = {node: reach(graph, node) for node in graph}
    found = {tuple(sorted(m for m in reached[node] if node in reached[m])) for node in graph}
    return sorted(circle for circle in found if len(circle) > 1)


def reach(graph, start):
    seen, todo = set(), [start]
    while todo:
        for callee in graph[todo.pop()] - seen:
            seen.add(callee)
            todo.append(callee)
    return seen


def one_caller_functions():
    """Public functions that exactly one other file calls, sorted."""
    functions, needed = symbols("T")
    callers = collections.Counter(symbol for symbols_of in needed.values() for symbol in symbols_of)
    return sorted(symbol for symbol in functions if callers[symbol] == 1)


def circle_faults():
    """Circles of calls between files, within a room or across rooms."""
    if missing := not_built():
        yield (f"{missing[0]}: build/obj has no object of it, or an older one ({len(missing)} such files): circles of "
               "calls are read from there; run `make programs`, then tests/style")
        return
    for circle in circles(calls()):
        rooms = sorted({str(source.parent) for source in circle})
        yield f"{', '.join(rooms)}: a circle of calls between files: {' '.join(map(str, circle))}"


def figure(pattern):
    """A number of docs/internals/figures.md; None: it is not there."""
    found = re.search(pattern, PAGE.read_text(), re.M)
    return int(found[1].replace(",", "")) if found else None


def allowed_one_callers():
    """Never more than before: who needs more says so in the page by hand."""
    before, now = figure(ONE_CALLER_ROW), len(one_caller_functions())
    return now if before is None else min(before, now)


def figure_faults():
    """Figures of docs/internals/figures.md that the tree has left behind."""
    if not_built():
        return  # circle_faults() says so
    allowed, now = figure(ONE_CALLER_ROW), one_caller_functions()
    if allowed is None or len(now) > allowed:
        yield (f"{len(now)} public functions have exactly one calling file, and {PAGE.name} allows {allowed}: make the new one static in the "
               "file that calls it, or merge it with one that others call; where that is worse, write the new number into the page")
    written, lines = figure(LINES_ROW) or 0, sum(len(lines_of(path)) for path in sources(".c", ".h"))
    if abs(lines - written) > STALE * lines:
        yield f"docs/internals/{PAGE.name} says that the product has {written:,} lines, and it has {lines:,}: run `tests/style --figures`"


def function_lengths(files):
    """Lines of each function, sorted."""
    command = ["ctags", "--languages=C", "--kinds-C=f", "--sort=no", "-x", "--_xformat=%n %e", *map(str, files)]
    try:
        out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"tests/style --figures needs universal-ctags (tools/setup check installs it): {error}")
    spans = [line.split() for line in out.splitlines()]
    return sorted(int(end) - int(start) + 1 for start, end in spans)


def percentile(ordered, percent):
    """The nearest rank: the smallest value that so many percent do not exceed."""
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def of_each(ordered, *percents):
    return " / ".join(f"{percentile(ordered, p):,}" for p in percents)


def lines_of(path):
    return (ROOT / path).read_text().splitlines()


def comment_lines(path):
    """(lines with nothing but comment, lines with code)."""
    comment = code = 0
    inside = False
    for line in lines_of(path):
        rest, began_inside = line.strip(), inside
        while rest:
            if inside:
                _, end, rest = rest.partition("*/")
                inside, rest = not end, rest.strip()
            elif rest.startswith("/*"):
                inside, rest = True, rest[2:]
            else:
                break
        if rest and not rest.startswith("//"):
            code += 1
        elif line.strip() or began_inside:
            comment += 1
    return comment, code


def comment_share(files):
    """Percent of the lines that are not blank."""
    comment, code = (sum(n) for n in zip(*map(comment_lines, files)))
    return f"{100 * comment / (comment + code):.1f}%"


def telling_lines(path):
    """The lines that could be somebody's idea: no blank ones, braces, comments or includes; (number, text)."""
    for number, line in enumerate(lines_of(path), 1):
        text = line.strip()
        if re.search(r"\w", text) and not text.startswith(("/*", "*", "//", "#include")):
            yield number, text


def duplicate_lines(files):
    """How many lines stand in a run of WINDOW telling lines that stands elsewhere, too."""
    places = collections.defaultdict(list)
    for path in files:
        told = list(telling_lines(path))
        for at in range(len(told) - WINDOW + 1):
            window = told[at:at + WINDOW]
            places[tuple(text for _, text in window)].append([(path, number) for number, _ in window])
    return len({line for found in places.values() if len(found) > 1 for window in found for line in window})


# Measured once in the same way (ctags, .c files), for the comparison: sources as of November 2026.
ANCHORS = ["crun", "git", "curl", "redis"]
THEIRS = {
    "functions": ["846", "9,672", "4,254", "4,439"],
    "lines of a function, p50 / p90 / p99 / max":
        ["21 / 78 / 221 / 366", "17 / 63 / 195 / 833", "20 / 79 / 191 / 441", "12 / 56 / 228 / 1,316"],
    "functions over 40 lines": ["27%", "20%", "25%", "16%"],
    "lines of a .c file, p50 / p90 / max":
        ["247 / 1,318 / 7,510", "412 / 2,157 / 7,858", "412 / 1,713 / 5,572", "521 / 3,420 / 14,068"],
    "comment lines, of all that are not blank": ["10.0%", "15.9%", "18.4%", "24.1%"],
}


def measured(rooms):
    """The rows that are compared, for some rooms."""
    files = sources(".c", rooms=rooms)
    functions = function_lengths(files)
    lengths = sorted(len(lines_of(path)) for path in files)
    long = sum(n > 40 for n in functions)
    return [f"{len(functions):,}", of_each(functions, 50, 90, 99, 100), f"{100 * long / len(functions):.1f}% ({long})",
            of_each(lengths, 50, 90, 100), comment_share(sources(".c", ".h", rooms=rooms))]


def table(head, rows):
    """Markdown; a first column of words, then figures."""
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def room_rows():
    """A row for each directory, then one for all; lines of .c and .h."""
    tied = collections.Counter(str(source.parent) for circle in circles(calls()) for source in circle)
    rooms = collections.defaultdict(list)
    for path in sources(".c", ".h"):
        rooms[str(path.parent)].append(len(lines_of(path)))
    for room, files in rooms.items():
        yield [f"{room}/", f"{len(files)}", f"{sum(files):,}", f"{tied[room]}"]
    everything = [n for files in rooms.values() for n in files]
    yield ["all", f"{len(everything)}", f"{sum(everything):,}", f"{sum(tied.values())}"]


def page(arrows_up):
    """The text of docs/internals/figures.md."""
    ours, tests = measured(PRODUCT), measured(["tests"])
    compared = [[what, ours[at], tests[at], *theirs] for at, (what, theirs) in enumerate(THEIRS.items())]
    return "\n".join([
        "# The house in figures",
        "",
        f"Written by `tests/style --figures` on {datetime.date.today()}; run it again after a large change. "
        "`tests/style` (a part of `make check`)",
        "fails on an upward arrow and on a circle of calls.",
        "",
        "## Beside others",
        *table(["", "dayfly", "its tests", *ANCHORS], compared),
        "",
        "Functions are those of .c files, measured with universal-ctags. The four others were measured once, in the same way.",
        "",
        "## Structure",
        *table(["", "dayfly"], [
            ["upward arrows (an include of a room that stands above)", str(arrows_up)],
            ["circles of calls between files", str(len(circles(calls())))],
            ["lines in runs that occur twice", f"{duplicate_lines(sources('.c')):,}"],
            [ONE_CALLER, f"{allowed_one_callers():,}"],
        ]),
        "",
        "A file calls another one when its object needs a function or a table of the other's object. A run that occurs twice "
        f"has {WINDOW} lines or",
        "more; blank lines, braces alone, comments and includes do not count. Of functions with one calling file `tests/style` refuses",
        "more than the number above, which `--figures` only lowers.",
        "",
        "## Rooms",
        "Lines of .c and .h files, and the files that are part of a circle.",
        "",
        *table(["room", "files", "lines", "in circles"], room_rows()),
        "",
    ])


def write_figures(arrows_up):
    """Prints docs/internals/figures.md and writes it."""
    text = page(arrows_up)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text)
    print(text, end="")
