"""What the site has besides the pages here: the paper's page, the commands, and links that leave this folder."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
NETWORK_SCRIPT = "https://unpkg.com/iframe-worker/shim"
PAPER = ROOT / "paper" / "README.md"
COMMANDS_HERE = "<!-- commands -->"
"""Where a page gets the commands."""
PIPE = "\\|"
"""A bar inside a cell of a table."""


def on_files(files: Any, config: Any) -> Any:
    """Add paper/README.md as a page, and the examples to download."""
    files.append(File.generated(config, "paper.md", content=PAPER.read_text(encoding="utf-8")))
    for example in sorted((ROOT / "examples").glob("*.*")):
        files.append(File.generated(config, f"examples/{example.name}", abs_src_path=str(example)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to where the site has the page."""
    if page.file.src_uri == "paper.md":
        markdown = re.sub(r"\]\(\.\./docs/", "](", markdown)
    if COMMANDS_HERE in markdown:
        markdown = markdown.replace(COMMANDS_HERE, commands())
    return markdown.replace("](../paper/README.md", "](paper.md").replace("](../examples/", "](examples/")


def commands() -> str:
    """Every command with its options, as its parser has them; read from the checkout, without torch."""
    houses = [str(ROOT), str(ROOT / "lab")]
    sys.path[:0] = houses
    try:
        from dendritree_lab.cli import COMMANDS, usage_of
    finally:
        del sys.path[: len(houses)]
    return "\n".join(
        line for name, command in COMMANDS.items() for line in command_lines(name, command, usage_of(name))
    )


def command_lines(name: str, command: Any, usage: str) -> Iterator[str]:
    """The section of a command: what it does, how it is called, its arguments, examples."""
    yield from (f"## {name}", "", command.run.__doc__ or "", "", "```", usage, "```", "")
    yield from ("| argument | meaning |", "|---|---|")
    for option in command.OPTIONS:
        words = option.usage if option.by_position else f"{option.name} {option.settings.get('metavar', '')}"
        yield f"| `{words.strip()}` | {option.settings['help'].replace('|', PIPE)} |"  # code needs no backslash
    yield from ("", "```", *command.EXAMPLES.splitlines(), "```", "")


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Take our own script for the search from disk: the theme's would come from the network."""
    script = "../" * page.file.src_uri.count("/") + "assets/search-from-disk.js"
    return output.replace(NETWORK_SCRIPT, script)


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for the page that says that there is none."""
    return output_content.replace(NETWORK_SCRIPT, "/assets/search-from-disk.js")
