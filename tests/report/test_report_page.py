"""Content and HTML of the report page."""

import pytest

from polyseme.report.claim import Findings
from polyseme.report.page.content import HELD, UNTESTED, ExampleSentences, Paragraph, PassRule, Verdict
from polyseme.report.page.drawing import Bar, bar_chart, line_chart
from polyseme.report.page.html import ClaimSection, Page, inline, write_page
from polyseme.report.tour import write_opening


def given(missing=(), **found):
    return Findings("model", "model", "data", False, found, dict(missing))


@pytest.mark.parametrize("same", [True, False])
def test_the_opening_tells_which_use_has_another_meaning(same):
    found = {"uses": 2, "nearest": [[[["the", "bank", "."], 1, 0.694, same]]] * 2}
    quotes = [block for block in write_opening([given(opening=found)]) if isinstance(block, ExampleSentences)]
    assert quotes[0].lines == ((("the", "bank", "."), 1, "0.69" if same else "0.69, different meaning"),)


def test_the_list_says_in_short_why_a_claim_was_not_tested():
    verdict = Verdict(UNTESTED, "Fitted tasks are needed (--tasks FILE). More is below.")
    page = write_page(Page(("m",), (), ((),), (ClaimSection(1, "Title", "Explanation", "", (verdict,)),), ""))
    assert "Not tested: fitted tasks are needed (--tasks FILE).</span>" in page
    assert "Of 1 claim about the model <em>m</em>, 1 not tested here." in page


def test_text_is_set_as_print_is_and_code_is_left_alone():
    nbsp, curly = "\u00a0", "\u2019"
    assert inline("a word's 95 % in layer 2") == f"a word{curly}s 95{nbsp}% in layer{nbsp}2"
    assert inline("the words' vectors, 'x'") == f"the words{curly} vectors, 'x'"
    assert inline("`it's 5 % of layer 2`") == "<code>it's 5 % of layer 2</code>"


def test_the_rule_stands_before_the_verdict():
    verdict = Verdict(HELD, "Because.", (Paragraph("Figures."), PassRule("it rains.")))
    page = write_page(Page(("m",), (), ((),), (ClaimSection(1, "Title", "Explanation", "", (verdict,)),), ""))
    section = page[page.index('id="claim-1"') :]
    assert section.index("It rains.") < section.index("Because.") < section.index("Figures.")


def test_text_of_data_cannot_become_markup():
    assert inline("<b> & `x*y*`") == "&lt;b&gt; &amp; <code>x*y*</code>"
    assert "<script>" not in bar_chart([Bar("<script>", 1)], 2)
    assert 'points="' in line_chart({"a": [1.0, None]}, ["0", "1"], "layer", (0, 1))
