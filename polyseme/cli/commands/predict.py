"""``polyseme predict``: the words that would come next, or before, or fit into a gap."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from polyseme.cli.output import DeviceOption, JsonOption, WithSoftmaxOption, decimals, show_table, working, write_json
from polyseme.errors import ConfigError, InputError, nearest

if TYPE_CHECKING:
    from polyseme.lm import LanguageModel

GAP = re.compile("_{2,}")
DIRECTIONS = ("forward", "backward")


class GapPrediction(NamedTuple):
    """The likeliest words at one place of a sentence."""

    words: list[str]
    position: int  # of the gap among the words
    found: list[tuple[str, float]]


def predict(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The beginning of a sentence, or one with a gap: ___.")],
    model: WithSoftmaxOption = None,
    direction: Annotated[
        str | None,
        typer.Option(
            help="backward: what came before TEXT. At a gap, forward or backward looks at one side only.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="How many.")] = 10,
    json: JsonOption = None,
    device: DeviceOption = "cpu",
) -> None:
    """Show the likeliest next words, or those that would fit where ___ stands."""
    from polyseme.lm import LanguageModel
    from polyseme.text.tokenizer import tokenize

    if direction not in (None, *DIRECTIONS):
        raise ConfigError(
            f"--direction must be forward or backward, not {direction!r}.{nearest(direction, DIRECTIONS)}"
        )
    if top < 1:
        raise ConfigError(f"--top must be 1 or more, not {top}")
    words = [word for sentence in tokenize(text) for word in sentence.words]
    if not words:
        raise InputError(f"there are no words in {text!r}; give the beginning of a sentence, or one with a gap: ___")
    with working(f"opening {model or 'the model that ships'}"):
        opened = LanguageModel.load(model, device=device)
    answers = _answers(opened, words, direction, top)
    if json:
        write_json(json, {"model": opened.name, "direction": direction, "answers": [_as_json(one) for one in answers]})
    if json != "-":
        for answer in answers:
            _show(answer, opened, direction)


def _answers(model: LanguageModel, words: list[str], direction: str | None, top: int) -> list[GapPrediction]:
    gaps = [place for place, word in enumerate(words) if GAP.fullmatch(word)]
    if not gaps and direction == "backward":
        return [GapPrediction(["___", *words], 0, model.predict_previous(words, top))]
    if not gaps:
        return [GapPrediction([*words, "___"], len(words), model.predict_next(words, top))]
    if direction == "forward":
        return [GapPrediction(words, gap, model.predict_next(words[:gap], top)) for gap in gaps]
    if direction == "backward":
        return [GapPrediction(words, gap, model.predict_previous(words[gap + 1 :], top)) for gap in gaps]
    return [GapPrediction(words, gap, model.substitutes(words, gap, top)) for gap in gaps]


def _as_json(answer: GapPrediction) -> dict[str, object]:
    found = [{"word": word, "probability": probability} for word, probability in answer.found]
    return {"words": answer.words, "position": answer.position, "found": found}


def _show(answer: GapPrediction, model: LanguageModel, direction: str | None) -> None:
    ends = {model.vocabulary.bos: "the sentence begins", model.vocabulary.eos: "the sentence ends"}
    rows = [(f"{word} ({ends[word]})" if word in ends else word, decimals(share, 4)) for word, share in answer.found]
    before, after = answer.words[: answer.position], answer.words[answer.position + 1 :]
    seen = f", {direction} only" if direction and before and after else ""
    show_table(f"{' '.join((*before, '[___]', *after))}  {model.name}{seen}", ("word", "probability"), rows)
