"""The page as text: nothing from outside, everything escaped, an anchor for each table."""

import re
from html.parser import HTMLParser

from dendritree_lab.report import Report
from dendritree_lab.report.html import html_page
from dendritree_lab.report.layout import Column, Group, Section

VOID = {"meta", "link", "br", "path", "use", "rect", "circle"}


class Outline(HTMLParser):
    """Tags, ids and links; complains about tags that do not close."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.links, self.tags, self._open = [], [], [], []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        self.links += [value for name, value in attributes if name in ("href", "src", "xlink:href")]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self._open.pop() == tag


def test_the_page_is_well_formed_whole_and_refers_to_nothing_outside(report):
    page = html_page(report)
    outline = Outline(page)
    assert len(outline.ids) == len(set(outline.ids))
    inner = [link.removeprefix("#") for link in outline.links if link.startswith("#")]
    assert set(inner) <= set(outline.ids)
    assert {link for link in outline.links if not link.startswith("#")} == {"data:,"}
    assert not re.search(r"https?:|@import|url\((?!#)", page)
    assert not {tag for tag, _ in outline.tags} & {"img", "iframe", "object", "embed"}
    for section in report.sections:  # an anchor for every table and chart
        names = [section.name, *(group.name for group in section.groups), *(chart.name for chart in section.charts)]
        assert set(names) <= set(outline.ids)


def test_what_looks_like_html_is_text():
    nasty = '<script>alert("x")</script> & $title'
    section = Section(
        "s", nasty, nasty, (Column("a", nasty), Column("b", nasty)), (Group("g", nasty, ((nasty,) * 2,)),)
    )
    page = html_page(Report(nasty, (nasty,), (section,), ((nasty, nasty),)))
    assert page.count("<script>") == 1  # our own
    assert page.count("&lt;script&gt;") >= 9
    Outline(page)
