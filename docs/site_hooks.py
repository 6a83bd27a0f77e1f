"""What the site has besides the pages here: the page of the paper, and links that leave this folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "paper" / "README.md"


def on_files(files: Any, config: Any) -> Any:
    """Add paper/README.md as a page."""
    files.append(File.generated(config, "paper.md", content=PAPER.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to where the site has the page; what it has not stays as plain text."""
    if page.file.src_uri == "paper.md":
        markdown = re.sub(r"\]\(\.\./docs/", "](", markdown)
    markdown = markdown.replace("](../paper/README.md", "](paper.md")
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)]*\)", r"\1", markdown) if page.file.src_uri.count("/") == 0 else markdown
