"""``polyseme predict``: the most likely next, previous or missing word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, NamedTuple

from typer import Argument, Option

from polyseme.cli.options import DeviceOption, LanguageModelOption, ResultOptions, expand_options
from polyseme.cli.output import decimals, show_table
from polyseme.cli.progress import working
from polyseme.errors import ConfigError, InputError, nearest

if TYPE_CHECKING:
    from polyseme.lm import LanguageModel

GAP = re.compile("_{2,}")
DIRECTIONS = ("forward", "backward")


class GapPrediction(NamedTuple):
    """The most likely words at one position of a sentence."""

    words: list[str]
    position: int  # of the gap among the words
    found: list[tuple[str, float]]


@expand_options
def predict(
    text: Annotated[str, Argument(metavar="TEXT", help="The start of a sentence, or a sentence with a gap: ___.")],
    *,
    model: LanguageModelOption = None,
    direction: Annotated[str | None, Option(help="Look at one side only: forward or backward.")] = None,
    top: Annotated[int, Option(help="How many to show.")] = 10,
    output: ResultOptions,
    device: DeviceOption = "cpu",
) -> None:
    """Predict the next word, or the word in a gap.

    A gap is written as ___ and is predicted from both sides, or from one with --direction. Without a gap, --direction
    backward predicts the word before TEXT.
    """
    from polyseme.lm import LanguageModel
    from polyseme.text.tokenizer import tokenize

    output.check()
    if direction not in (None, *DIRECTIONS):
        raise ConfigError(
            f"--direction must be forward or backward, not {direction!r}.{nearest(direction, DIRECTIONS)}"
        )
    if top < 1:
        raise ConfigError(f"--top must be 1 or more, not {top}")
    words = [word for sentence in tokenize(text) for word in sentence.words]
    if not words:
        raise InputError(
            f"there are no words in {text!r}; give the beginning of a sentence, or a sentence with a gap: ___"
        )
    with working(f"opening {model or 'the English model'}"):
        opened = LanguageModel.load(model, device=device)
    predictions = _predict(opened, words, direction, top)
    table = {"model": opened.name, "direction": direction, "answers": [_as_json(one) for one in predictions]}
    output.present(table, lambda: _show(predictions, opened, direction))


def _predict(model: LanguageModel, words: list[str], direction: str | None, top: int) -> list[GapPrediction]:
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


def _as_json(one: GapPrediction) -> dict[str, object]:
    found = [{"word": word, "probability": probability} for word, probability in one.found]
    return {"words": one.words, "position": one.position, "found": found}


def _show(predictions: list[GapPrediction], model: LanguageModel, direction: str | None) -> None:
    ends = {model.vocabulary.bos: "sentence start", model.vocabulary.eos: "sentence end"}
    for one in predictions:
        rows = [(f"{word} ({ends[word]})" if word in ends else word, decimals(p, 4)) for word, p in one.found]
        before, after = one.words[: one.position], one.words[one.position + 1 :]
        seen = f", {direction} only" if direction and before and after else ""
        show_table(f"{' '.join((*before, '[___]', *after))}  {model.name}{seen}", ("word", "probability"), rows)
