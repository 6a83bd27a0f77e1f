"""Markdown that renders as what was meant."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dendritree_lab.report.layout import Column, Group, Report, Section
from dendritree_lab.report.markdown import markdown

COLUMNS = (
    Column("model", "model"),
    Column("task"),
    Column("acc", "val. acc.", "spread"),
    Column("n", "trials", "count"),
)


def rendered_cells(text):
    """The cells of all tables, as an independent Markdown parser reads them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    cells, row = [], []
    for before, token in pairwise(tokens):
        if before.type in ("td_open", "th_open"):
            row.append("".join(child.content for child in token.children if child.type == "text" or child.content))
        if token.type == "tr_close":
            cells.append(row)
            row = []
    return cells


def test_a_table_shows_what_people_see_and_lines_up():
    rows = (("MLP h=11", "multiclass", (0.58, 0.04), 10), ("dendritic b=32", "multiclass", None, 0))
    section = Section("s", "Tables", "Some words.", COLUMNS, (Group("g", "multiclass", rows),))
    lines = markdown(Report("Report", ("One.", "Two."), (section,))).splitlines()
    assert lines == [
        "# Report",
        "",
        "- One.",
        "- Two.",
        "",
        "## Tables",
        "",
        "Some words.",
        "",
        "### multiclass",
        "",
        "| model          |     val. acc. | trials |",
        "|:---------------|--------------:|-------:|",
        "| MLP h=11       | 0.580 ± 0.040 |     10 |",
        "| dendritic b=32 |             \N{EN DASH} |      0 |",
    ]


@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1), min_size=1, max_size=4))
def test_whatever_a_cell_holds_it_stays_in_its_cell(texts):
    # Spaces at the ends go, and entities are left to mean what they mean
    texts = [re.sub("&", "", text).strip() or "x" for text in texts]
    section = Section(
        "s", "S", "", (Column("a", "a"), Column("b", "b")), (Group("g", "", tuple((t, t) for t in texts)),)
    )
    cells = rendered_cells(markdown(Report("R", (), (section,))))
    assert cells == [["a", "b"], *([text, text] for text in texts)]


def test_long_evidence_stands_below_the_table():
    columns = (Column("claim", "claim"), Column("evidence", "evidence", "evidence"))
    section = Section("s", "S", "", columns, (Group("g", "", (("A claim", "1 of 2 won: this; not that."),)),))
    text = markdown(Report("R", (), (section,)))
    assert rendered_cells(text)[1] == ["A claim", "1 of 2 won"]
    assert "- A claim: 1 of 2 won: this; not that." in text
