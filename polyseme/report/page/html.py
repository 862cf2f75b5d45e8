"""The report as one self-contained HTML page: no script, no external resource, light or dark as the screen is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from polyseme.report.page.content import (
    FAILED,
    HELD,
    INCONCLUSIVE,
    UNTESTED,
    Block,
    Command,
    ExampleGroups,
    ExampleSentences,
    Figure,
    Outcome,
    Paragraph,
    PassRule,
    Table,
    Verdict,
    capitalize_first,
    join_words,
)

_CLASSES: dict[Outcome, str] = {HELD: "held", FAILED: "failed", INCONCLUSIVE: "open", UNTESTED: "untested"}
_MARKS = (
    (re.compile(r"\*\*(.+?)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"(?<![\w*])\*([^*\s][^*]*?)\*(?!\w)"), r"<em>\1</em>"),
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
)
_CODE = re.compile(r"(`[^`]+`)")
_TYPOGRAPHY = (  # not in code, which readers copy
    (re.compile(r"(?<=\d) (?=%)"), "\N{NO-BREAK SPACE}"),
    (re.compile(r"(?<=\b[Ll]ayer) (?=\d)|(?<=\b[Cc]laim) (?=\d)"), "\N{NO-BREAK SPACE}"),
    (re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_])|(?<=s)'(?= [a-z])"), "\N{RIGHT SINGLE QUOTATION MARK}"),
)
_MANY = 8  # more example sentences than this are set in two columns
_HINT = """<p class="note">For each claim, the rule that decides whether it holds stands before the results. Figures
come from samples of text, and another sample would give slightly other figures. A <em>95&nbsp;% interval</em> says how
far off they may be: for 95 of 100 samples, it contains the figure that unlimited text would give. If the interval lies
on one side of the rule’s threshold, the claim <em>held</em> or <em>did not hold</em>; if the threshold lies inside, the
verdict is <em>inconclusive</em>.</p>"""


@dataclass(frozen=True)
class ClaimSection:
    """The section of one claim: its text, the verdict on each model in order, and a comparison of all models."""

    number: int
    title: str
    explanation: str
    hint: str
    verdicts: tuple[Verdict, ...]
    comparison: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Page:
    """All content of the report page.

    Attributes:
        models: The models' names, in order.
        opening: The introduction, below the title.
        tour: How each model makes its vectors.
        claims: A section for each claim.
        settings: How the report was made, for the footer.
    """

    models: tuple[str, ...]
    opening: tuple[Block, ...]
    tour: tuple[tuple[Block, ...], ...]
    claims: tuple[ClaimSection, ...]
    settings: str


def write_page(page: Page) -> str:
    """Render the page as HTML; the same content gives the same bytes."""
    css = (files("polyseme.report.page") / "page.css").read_text("utf-8")
    names = ", ".join(page.models)
    body = "\n".join([_header(page), _main(page), f"<footer><p>{inline(page.settings)}</p></footer>"])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(names)}: what its word vectors know</title>\n<style>\n{css}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def inline(text: str) -> str:
    """Markdown emphasis and code as HTML, with typographic spaces and quotes; everything else is escaped."""
    safe = "".join(part if part.startswith("`") else _typeset(part) for part in _CODE.split(escape(text, quote=False)))
    for pattern, replacement in _MARKS:
        safe = pattern.sub(replacement, safe)
    return safe


def _typeset(text: str) -> str:
    """Text with non-breaking spaces and curly apostrophes."""
    for pattern, replacement in _TYPOGRAPHY:
        text = pattern.sub(replacement, text)
    return text


def _header(page: Page) -> str:
    several = len(page.models) > 1
    title = "What do these models know about words?" if several else "What does this model know about words?"
    return (
        f'<header>\n<p class="kicker">polyseme report · {escape(", ".join(page.models))}</p>\n<h1>{title}</h1>\n'
        f"{_blocks(page.opening)}\n{_summary(page)}\n{_HINT if page.claims else ''}\n</header>"
    )


def _summary(page: Page) -> str:
    if not page.claims:
        return ""
    rows = []
    for row in page.claims:
        badges = "".join(
            _badge(verdict.outcome, name if len(page.models) > 1 else "")
            for name, verdict in zip(page.models, row.verdicts, strict=True)
        )
        hints = "".join(f'<span class="hint">{inline(text)}</span>' for text in (row.hint, _reason(row)) if text)
        rows.append(
            f'<li><span><span class="number">{row.number}</span><span><a href="#claim-{row.number}">'
            f'{inline(row.title)}</a>{hints}</span></span><span class="verdicts">{badges}</span></li>'
        )
    return f"{_counts(page)}\n<ol class='claims'>\n" + "\n".join(rows) + "\n</ol>"


def _reason(row: ClaimSection) -> str:
    """Why a claim was not tested, in one sentence; empty if it was."""
    reasons = dict.fromkeys(_first_sentence(verdict.reason) for verdict in row.verdicts if verdict.outcome == UNTESTED)
    return f"Not tested: {'; '.join(reasons)}." if reasons else ""


def _first_sentence(text: str) -> str:
    first = re.split(r"(?<=[.;]) ", text, maxsplit=1)[0].rstrip(".;")
    return first[:1].lower() + first[1:] if first[1:2].islower() or first[1:2] == " " else first


def _counts(page: Page) -> str:
    lines = []
    for place, name in enumerate(page.models):
        counts = Counter(row.verdicts[place].outcome for row in page.claims)
        summary = ", ".join(
            f"{counts[outcome]} {outcome}" for outcome in (HELD, FAILED, INCONCLUSIVE, UNTESTED) if counts[outcome]
        )
        many = f"{len(page.claims)} claim{'s' if len(page.claims) > 1 else ''}"
        lines.append(f"<p>Of {many} about the model <em>{escape(name)}</em>, {summary}.</p>")
    return "\n".join(lines)


def _main(page: Page) -> str:
    parts = []
    if any(page.tour):
        parts.append('<h2 id="tour">How the model makes its vectors</h2>')
        parts += [_per_model(page, place, _blocks(blocks)) for place, blocks in enumerate(page.tour) if blocks]
    for row in page.claims:
        number = row.number
        parts.append(
            f'<section id="claim-{number}">\n<h2>{number}. {inline(row.title)}</h2>\n'
            f'<p class="said">{inline(row.explanation)}</p>'
        )
        for place, verdict in enumerate(row.verdicts):
            because = f'<p class="because">{_badge(verdict.outcome)} {inline(verdict.reason)}{_open(verdict)}</p>'
            rules = [block for block in verdict.blocks if isinstance(block, PassRule)]
            rest = [block for block in verdict.blocks if not isinstance(block, PassRule)]
            parts.append(_per_model(page, place, "\n".join([*map(_block, rules), because, *map(_block, rest)])))
        parts.append(f"{_blocks(row.comparison)}</section>")
    return "<main>\n" + "\n".join(parts) + "\n</main>"


def _per_model(page: Page, place: int, text: str) -> str:
    return f'<h3 class="model">{escape(page.models[place])}</h3>\n{text}' if len(page.models) > 1 else text


def _open(verdict: Verdict) -> str:
    return " These figures do not decide it; a larger sample might." if verdict.outcome == INCONCLUSIVE else ""


def _badge(outcome: Outcome, name: str = "") -> str:
    label = f"{escape(name)}: {outcome}" if name else outcome
    return f'<span class="badge {_CLASSES[outcome]}">{label}</span>'


def _blocks(blocks: Sequence[Block]) -> str:
    return "\n".join(map(_block, blocks))


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"<h3>{inline(text[3:])}</h3>" if text.startswith("## ") else f"<p>{inline(text)}</p>"
        case PassRule(text):
            return f'<div class="rule"><b>The claim holds if</b>{inline(capitalize_first(text))}</div>'
        case Figure(svg, caption):
            return f"<figure>\n{svg}\n{f'<figcaption>{inline(caption)}</figcaption>' if caption else ''}</figure>"
        case Table():
            return _table(block)
        case ExampleSentences(title, lines):
            return _quotes(title, lines)
        case ExampleGroups(title, groups):
            parts = "\n".join(f"<div>{_quotes(heading, lines)}</div>" for heading, lines in groups)
            return f'<p class="note">{inline(title)}</p>\n<div class="groups">\n{parts}\n</div>'
        case Command(line, lead):
            before = f'<p class="note">{inline(lead)}</p>\n' if lead else ""
            return f"{before}<pre>{escape(line, quote=False)}</pre>"


def _table(table: Table) -> str:
    kinds = [' class="text"' if any(map(_is_text, cells)) else "" for cells in zip(*table.rows, strict=True)]
    kinds = kinds or [""] * len(table.columns)
    head = "".join(f"<th{kind}>{inline(column)}</th>" for kind, column in zip(kinds, table.columns, strict=True))
    rows = "\n".join(
        "<tr>" + "".join(f"<td{kind}>{inline(cell)}</td>" for kind, cell in zip(kinds, row, strict=True)) + "</tr>"
        for row in table.rows
    )
    caption = f'\n<p class="note">{inline(table.caption)}</p>' if table.caption else ""
    return (
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>{caption}'
    )


def _quotes(title: str, lines: Sequence[tuple[tuple[str, ...], int, str]]) -> str:
    items = []
    for words, place, note in lines:
        marked = [
            f"<mark>{escape(word, quote=False)}</mark>" if number == place else escape(word, quote=False)
            for number, word in enumerate(words)
        ]
        remark = f' <span class="note">{inline(note)}</span>' if note else ""
        items.append(f"<li>{join_words(marked)}{remark}</li>")
    heading = f'<p class="note">{inline(title)}</p>\n' if title else ""
    many = " many" if len(items) > _MANY else ""
    return f'{heading}<ul class="quotes{many}">\n' + "\n".join(items) + "\n</ul>"


def _is_text(cell: str) -> bool:
    """Whether a table cell holds words rather than a number."""
    return cell[:1].isalpha() or cell.startswith("*")
