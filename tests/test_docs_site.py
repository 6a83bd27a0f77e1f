"""The documentation site: it builds without a warning, has every page and public name, and needs no network."""

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from made_once import made_once

import dendritree
from dendritree_lab.cli import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = sorted(path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` builds it, warnings as errors."""

    def build(folder):
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
        environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "site", build)


def test_every_page_is_in_the_site_and_in_its_menu(site):
    menu = (site / "index.html").read_text(encoding="utf-8")
    pages = [page.with_suffix(".html") for page in (*PAGES, Path("paper.md"))]
    assert [page for page in pages if not (site / page).is_file() or f'href="{page.as_posix()}"' not in menu] == []


def test_every_public_name_is_documented_and_no_private_one(site):
    text = "".join(path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html"))
    names = {name for name in dendritree.__all__ if not name.startswith("_")}
    assert {name for name in names if f'id="dendritree.{name}"' not in text} == set()
    assert re.findall(r'id="dendritree[\w.]*\._\w*"', text) == []


def test_the_page_of_the_command_line_has_every_command_and_option(site):
    text = (site / "commands.html").read_text(encoding="utf-8")
    for name, command in COMMANDS.items():
        start = text.index(f'<h2 id="{name}">')
        section = text[start : text.find("<h2 ", start + 1)]
        assert [o.name for o in command.OPTIONS if not o.by_position and f"<code>{o.name}" not in section] == []


def test_pages_load_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|source)[^>]+src=\"([^\"]+)\"", text)
        loaded += re.findall(r"<link[^>]+rel=\"(?:stylesheet|preload|icon)\"[^>]*href=\"([^\"]+)\"", text)
        assert [link for link in loaded if re.match(r"(?:https?:)?//", link)] == [], page.name


def test_the_search_works_from_disk_without_a_network(site, browser):
    page = browser.open(site / "api" / "layers.html", 1200)
    page.value("document.querySelector('[data-md-toggle=search]').click()")
    page.value(
        "(() => { const box = document.querySelector('.md-search__input'); box.focus(); box.value = 'rewiring';"
        " box.dispatchEvent(new Event('input', {bubbles: true})); box.dispatchEvent(new Event('keyup')) })()"
    )
    assert page.wait_until("document.querySelectorAll('.md-search-result__item').length") > 0
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []


def test_every_link_within_the_site_leads_somewhere(site):
    """Also those in HTML, which MkDocs does not check."""
    texts = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if path.name != "404.html"}
    anchors = {path: {"", *re.findall(r'\bid="([^"]+)"', text)} for path, text in texts.items()}
    broken = []
    for page, text in texts.items():
        for link in re.findall(r'\b(?:href|src|srcset)="([^"]*)"', text):
            address, _, anchor = unescape(link).partition("#")
            target = (page.parent / address.partition("?")[0]).resolve() if address else page
            if re.match(r"(?:[a-z]+:|//)", link):
                continue
            if not target.exists() or unquote(anchor) not in anchors.get(target, {unquote(anchor)}):
                broken.append((page.name, link))
    assert broken == []


@pytest.mark.parametrize("dark", [False, True])
def test_a_page_of_results_fits_a_phone_and_a_desk(site, browser, dark):
    scrolling = "[...document.querySelectorAll('{}')].filter((box) => box.scrollWidth > box.clientWidth + 1).length"
    phone = browser.open(site / "images.html", 375, dark=dark)
    assert phone.value("document.documentElement.scrollWidth") == 375
    assert phone.value(scrolling.format("pre > code")) == 0
    assert phone.value("document.querySelector('picture img').currentSrc").endswith("images-phone.png")
    desk = browser.open(site / "single-layer.html", 1280, dark=dark)
    assert desk.value(scrolling.format(".md-typeset__scrollwrap")) == 0
