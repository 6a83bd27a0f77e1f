"""What the site has besides the pages here: the page of the paper, and links that leave this folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
NETWORK_SCRIPT = "https://unpkg.com/iframe-worker/shim"
PAPER = ROOT / "paper" / "README.md"


def on_files(files: Any, config: Any) -> Any:
    """Add paper/README.md as a page."""
    files.append(File.generated(config, "paper.md", content=PAPER.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to where the site has the page."""
    if page.file.src_uri == "paper.md":
        markdown = re.sub(r"\]\(\.\./docs/", "](", markdown)
    return markdown.replace("](../paper/README.md", "](paper.md")


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Take our own script for the search from disk: the theme's would come from the network."""
    script = "../" * page.file.src_uri.count("/") + "assets/search-from-disk.js"
    return output.replace(NETWORK_SCRIPT, script)


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for the page that says that there is none."""
    return output_content.replace(NETWORK_SCRIPT, "/assets/search-from-disk.js")
