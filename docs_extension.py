"""Markdown extension of the documentation site: the command reference from the command line, and ``>>>`` sessions."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import typer
from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor

from polyseme.cli import GROUPS, app

COMMANDS_HERE = "<!-- commands -->"
SESSION = re.compile(r"^```python\n(?=>>> )", re.MULTILINE)
NOTE = re.compile(r"\s*\[(?P<note>(?:default|env var|required)[^\]]*)\]\s*$")


class Sources(Preprocessor):
    """Fills in the command reference, and marks ``>>>`` sessions, so that they are copied without their prompts."""

    def run(self, lines: list[str]) -> list[str]:
        """Change the lines of a page before Markdown reads them."""
        text = SESSION.sub("```pycon\n", "\n".join(lines))
        if COMMANDS_HERE in text:
            text = text.replace(COMMANDS_HERE, "\n".join(command_reference()))
        return text.split("\n")


class DocsExtension(Extension):
    """The extension, as ``markdown_extensions`` of mkdocs.yml names it."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - its name in Markdown
        """Come before every other preprocessor, which would read the fences first."""
        md.preprocessors.register(Sources(md), "polyseme-docs", priority=1000)


def makeExtension(**settings: Any) -> DocsExtension:  # noqa: N802, ANN401 - its name in Markdown
    """Make the extension."""
    return DocsExtension(**settings)


def command_reference() -> Iterator[str]:
    """Markdown lines on every command, in the groups of ``polyseme --help``, with every argument and option."""
    root: Any = typer.main.get_command(app)
    context = root.context_class(root, info_name="polyseme")
    for title in GROUPS:
        yield f"## {title}\n"
        for command in root.commands.values():
            if command.rich_help_panel == title:
                yield from _describe(command, context)


def _describe(command: Any, parent: Any) -> Iterator[str]:  # noqa: ANN401 - classes of click, which typer keeps private
    context = command.context_class(command, info_name=command.name, parent=parent)
    subcommands = getattr(command, "commands", {})
    yield f"### {context.command_path}\n"
    yield f"{html.escape(command.help, quote=False)}\n"
    if not subcommands:
        usage = re.sub("[{}]", "", " ".join(command.collect_usage_pieces(context)))
        yield f"```text\n{context.command_path} {usage}\n```\n"
        records = (parameter.get_help_record(context) for parameter in command.params)
        yield from (_parameter(*record) for record in records if record)
    for subcommand in subcommands.values():
        yield from _describe(subcommand, context)


def _parameter(names: str, text: str) -> str:
    """An argument or option as an entry of a definition list; its default is a line of its own."""
    note = NOTE.search(text)
    about = html.escape(NOTE.sub("", text), quote=False)
    return f"`{names}`\n:   {about}" + (f"<br><small>{html.escape(note['note'])}</small>\n" if note else "\n")
