"""The README and the other pages are correct: code runs, commands work, files exist."""

import ast
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from test_architecture import MAPS

import dendritree
from dendritree.models import registry
from dendritree.neurons import families
from dendritree.training.examples import Examples
from dendritree_lab.cli import main, make_parser
from dendritree_lab.data.split import DataSplit

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BUILT = ROOT / "docs" / "built.md"
FOR_CONTRIBUTORS = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")]
PAGES = [README, *FOR_CONTRIBUTORS, *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("paper/*.md"))]
HOUSES = {"dendritree": ROOT / "dendritree", "dendritree_lab": ROOT / "lab" / "dendritree_lab"}
RUNNABLE = ("python", "py")
# They train, fetch or write; tests/lab/cli runs them.
TRAINS_OR_FETCHES = ("reproduce", "report", "data", "compare", "view", "tune", "export", "figures", "fit", "predict")


class Block(NamedTuple):
    """A fenced block: its language, the line its fence stands in (from 1), and what it holds."""

    language: str
    line: int
    text: str


def blocks_of(page):
    blocks, opened = [], None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.startswith("```"):
            if opened:
                opened[2].append(line)
        elif opened:
            blocks.append(Block(opened[0], opened[1], "\n".join(opened[2])))
            opened = None
        else:
            opened = (line[3:].strip(), number, [])
    assert opened is None, f"{page.name}: the block of line {opened[1]} is never closed"
    return blocks


def prose_of(page):
    """The text outside fenced blocks."""
    return re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))


def run_blocks(page):
    """Run the Python blocks of a page one after the other in one namespace, which is returned."""
    namespace = {"__name__": page.stem}
    for block in blocks_of(page):
        if block.language in RUNNABLE:
            lines_before = "\n" * block.line  # so that an error names the line in the page
            exec(compile(lines_before + block.text, str(page), "exec"), namespace)
    return namespace


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Pages write files where they run; torch's random state and the names of models are put back."""
    monkeypatch.chdir(tmp_path)
    for module, names in ((registry, "_ENTRIES"), (families, "_NEURONS")):
        monkeypatch.setattr(module, names, dict(getattr(module, names)))
    with torch.random.fork_rng(devices=[]):
        yield tmp_path


# --------------------------------------------------------------------------------------------------------------- code


def test_the_readme_is_short_and_begins_with_code():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120
    assert len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()) <= 60
    assert blocks_of(README)[0].language == "pycon"
    assert blocks_of(README)[0].line <= 25


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_at_most_1200_words_of_prose(page):
    prose = re.sub(r"(?m)^ *\|.*$", "", prose_of(page))  # without tables
    assert len(prose.split()) <= 1200


@pytest.mark.usefixtures("scratch")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run_and_print_what_their_comments_say(page, capsys):
    run_blocks(page)
    printed = capsys.readouterr().out.splitlines()
    code = "\n".join(block.text for block in blocks_of(page) if block.language in RUNNABLE)
    for promised in re.findall(r"(?m)^ *print\(.*\) +# (.+)$", code):
        assert promised in printed


@pytest.mark.usefixtures("scratch")
def test_errors_shown_in_the_readme_are_the_real_ones():
    namespace = {name: getattr(dendritree, name) for name in dendritree.__all__}  # names are imported when first used
    for block in blocks_of(README):
        if not block.language and block.text.startswith(">>> "):
            statement, *shown = block.text.splitlines()
            with pytest.raises(ValueError) as caught:  # noqa: PT011  the whole message is compared below
                exec(statement.removeprefix(">>> "), namespace)
            real = f"{caught.type.__name__}: {caught.value}"
            assert " ".join(real.split()) == " ".join(" ".join(shown).split())


# ----------------------------------------------------------------------------------------------------------- commands


def commands_of(page, program):
    """Command lines of a program, in inline code and in blocks that are not Python, without comments."""
    text = "\n".join(block.text for block in blocks_of(page) if block.language not in RUNNABLE)
    inline = re.findall(rf"`({program} [^`]+)`", prose_of(page))
    return [*inline, *re.findall(rf"(?m)^(?:\$ )?({program} .*?)(?:\s+#.*)?$", text)]


def test_the_readme_names_the_two_commands_and_every_make_target_exists():
    lines = [line for page in (README, *FOR_CONTRIBUTORS) for line in commands_of(page, "make")]
    named = {word for line in lines for word in shlex.split(line)[1:] if "=" not in word}
    assert {"reproduce", "test"} <= named
    targets = set(re.findall(r"(?m)^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_dendritree_commands_in_a_page_work(page, capsys):
    for line in commands_of(page, "dendritree"):
        arguments = shlex.split(line)[1:]
        if arguments[0] in TRAINS_OR_FETCHES:
            assert make_parser().parse_args(arguments).command == arguments[0], line
            continue
        assert main(arguments) == 0, line
        assert capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_scripts_that_a_page_runs_exist(page):
    for line in commands_of(page, "python"):
        for word in shlex.split(line)[1:]:
            assert not word.endswith(".py") or (ROOT / word).is_file(), line


# -------------------------------------------------------------------------------------------------------------- files


def slug(heading):
    """The anchor GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_and_pictures_lead_somewhere(page):
    prose = prose_of(page)
    links = re.findall(r"\]\(([^)\s]+)[^)]*\)", prose) + re.findall(r"(?:src|href)=\"([^\"]+)\"", prose)
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name} links to {link}"
        if anchor:
            headings = re.findall(r"(?m)^#+ (.+)$", target.read_text(encoding="utf-8"))
            assert anchor in map(slug, headings), f"{page.name} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_in_inline_code_exist(page):
    prose = prose_of(page).replace("NAME", "dnm")  # in recipes for a new neuron
    for path in re.findall(r"`([\w.-]+/[\w./-]*)`", prose):
        bases = (ROOT, page.parent, *HOUSES.values())
        assert any((base / path).exists() for base in bases), f"{page.name} names {path}"


def file_tree():
    """The paths in the annotated file tree of docs/built.md: entries are indented under their folder."""
    trees = [block.text for block in blocks_of(BUILT) if block.text.startswith("dendritree/")]
    assert len(trees) == 1, "docs/built.md has no file tree, or several"
    folders, paths = [], []
    for line in trees[0].splitlines():
        plain = re.sub("[│├└─]", " ", line)
        depth, name = len(plain) - len(plain.lstrip()), plain.split()[0]
        folders = [(d, folder) for d, folder in folders if d < depth]
        path = (folders[-1][1] if folders else Path()) / name
        paths.append(path)
        if name.endswith("/"):
            folders.append((depth, path))
    return paths


def test_the_file_tree_shows_files_that_exist():
    paths = file_tree()
    assert len(paths) > 5
    assert [str(path) for path in paths if not (ROOT / path).exists()] == []


def test_the_file_tree_shows_every_module_of_each_folder_it_opens():
    shown = {ROOT / path for path in file_tree()}
    opened = {path.parent for path in shown} - {ROOT, ROOT / "lab"}
    assert {"dendritree", "ops", "layers", "dendritree_lab", "studies"} <= {folder.name for folder in opened}
    entries = [path for folder in opened for path in folder.iterdir()]
    modules = {path for path in entries if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert [path.name for path in sorted(modules - shown) if not path.name.startswith("_")] == []


@pytest.mark.parametrize("house", HOUSES)
def test_the_file_tree_stands_in_the_order_of_imports(house):
    units = {unit: line for line, units in enumerate(MAPS[house].splitlines()) for unit in units.split()}
    inside = [ROOT / path for path in file_tree() if HOUSES[house] in (ROOT / path).parents]
    names = [".".join(path.relative_to(HOUSES[house]).with_suffix("").parts) for path in inside]
    lines = [units[name] for name in names if name in units]
    assert len(lines) == len(units)
    assert lines == sorted(lines)


@pytest.mark.parametrize(("house", "tests"), [("dendritree", "library"), ("dendritree_lab", "lab")])
def test_tests_have_a_folder_for_every_folder_of_their_house(house, tests):
    folders = {path.parent for path in HOUSES[house].glob("*/__init__.py")}
    folders |= {path.parent for path in HOUSES[house].glob("studies/*/__init__.py")}
    inside = [folder.relative_to(HOUSES[house]) for folder in folders]
    assert [str(path) for path in inside if not (ROOT / "tests" / tests / path).is_dir()] == []


def test_the_papers_page_names_every_file_that_departs_from_the_paper():
    page = (ROOT / "paper" / "README.md").read_text(encoding="utf-8")
    paths = [path for house in HOUSES.values() for path in house.rglob("*.py")]
    departing = [path for path in paths if "NOTE[DIFF]" in path.read_text("utf-8")]
    assert len(departing) > 3
    assert [str(path) for path in departing if f"`{path.relative_to(ROOT).as_posix()}`" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_finished(page):
    assert re.findall(r"(?m)\b(?:TODO|FIXME|XXX|TBD)\b|^[A-Z]{4,}$", prose_of(page)) == []


def first_lines():
    """The code that the README begins with."""
    return [line.removeprefix(">>> ") for line in blocks_of(README)[0].text.splitlines() if line.startswith(">>> ")]


@pytest.mark.usefixtures("scratch")
def test_the_first_lines_of_the_readme_run(monkeypatch, capsys):
    images = torch.rand(60, 784)
    part = Examples(images, torch.arange(60) % 10)
    made = DataSplit(part, part, part, image_shape=(1, 28, 28))
    monkeypatch.setattr("dendritree_lab.data.load_dataset", {"mnist": made}.get)
    exec("\n".join(first_lines()).replace("epochs=10", "epochs=2"), {})
    assert len(ast.literal_eval(capsys.readouterr().out.splitlines()[-1])) == 2


@pytest.mark.slow
def test_the_first_lines_of_the_readme_train_what_it_says(real_data):
    real_data("mnist")
    namespace = {}
    torch.manual_seed(0)
    exec("\n".join(first_lines()), namespace)
    _, accuracy = namespace["evaluate"](namespace["net"], namespace["mnist"].test)
    assert accuracy > 0.988
