"""Splitting raw text in helper processes: what they say is the tokenizer's, and they can be ended at any time."""

import asyncio
import os
import signal

import pytest

from polyseme.serving.engine import splitter as module
from polyseme.serving.engine.admission import OverloadedError
from polyseme.serving.engine.sizes import TooLargeError
from polyseme.serving.engine.splitter import Splitter
from polyseme.serving.settings import Limits
from polyseme.text.tokenizer import tokenize

TEXTS = ["She paid at the bank 🙂. It wasn't open, said 日本.", "", " \n ", "One. Two!\n\nThree", "x" * 40_000 + " y"]
STUCK = "import time; time.sleep(600)"


def with_splitter(scenario, **limits):
    """Run a scenario with a splitter of its own."""

    async def whole():
        splitter = Splitter(Limits(**limits))
        try:
            return await scenario(splitter)
        finally:
            await splitter.close()

    return asyncio.run(whole())


def process_of(splitter):
    return splitter._ordinary._process


async def until_there(splitter):
    while process_of(splitter) is None:
        await asyncio.sleep(0.001)
    return process_of(splitter)


def test_texts_are_split_as_the_tokenizer_splits_them():
    found = with_splitter(lambda splitter: splitter.split(TEXTS, [()] * len(TEXTS)), word_characters=10**6)
    assert found == [list(tokenize(text)) for text in TEXTS]
    assert with_splitter(lambda splitter: splitter.split([], [])) == []


@pytest.mark.parametrize(
    ("text", "message", "where"),
    [
        ("a b c d e f.", "a sentence may have 5 words, not 7", ["input", 1]),
        ("a bcdefghijkl", "a word may have 10 characters", ["input", 1, 1]),
        ("Go on. " * 4, "a request may have 3 sentences and 9 words; send several", ["input", 1]),
        ("It was so. He was in. We go.", "a request may have 3 sentences and 9 words; send several", ["input", 1]),
    ],
)
def test_a_text_over_a_limit_is_refused_with_its_place(text, message, where):
    limits = {"sentence_words": 5, "word_characters": 10, "sentences": 3, "words": 9}
    with pytest.raises(TooLargeError, match=message) as refused:
        with_splitter(lambda splitter: splitter.split(["fine", text], [["input", 0], ["input", 1]]), **limits)
    assert refused.value.where == where


def test_a_text_that_takes_too_long_is_abandoned_with_its_process(monkeypatch):
    async def scenario(splitter):
        monkeypatch.setattr(module, "_CODE", STUCK)
        split = asyncio.create_task(splitter.split(["slow"], [["text"]]))
        process = await until_there(splitter)
        with pytest.raises(TooLargeError, match=r"longer than 0\.05 s to split"):
            await split
        assert await process.wait() == -signal.SIGKILL

    with_splitter(scenario, split_seconds=0.05)


def test_a_request_that_is_cancelled_ends_the_work_and_the_next_one_begins_anew(monkeypatch):
    async def scenario(splitter):
        with monkeypatch.context() as patch:
            patch.setattr(module, "_CODE", STUCK)
            split = asyncio.create_task(splitter.split(["slow"], [["text"]]))
            process = await until_there(splitter)
            split.cancel()
            assert await process.wait() == -signal.SIGKILL
        (found,) = await splitter.split(["It is fine."], [["text"]])
        assert found[0].words == ["It", "is", "fine", "."]
        os.kill(process_of(splitter).pid, signal.SIGKILL)  # as the system does when memory is short
        await process_of(splitter).wait()
        (found,) = await splitter.split(["It is fine."], [["text"]])
        assert found[0].words == ["It", "is", "fine", "."]

    with_splitter(scenario)


def test_texts_that_wait_are_bounded_and_a_long_one_does_not_hold_up_short_ones(monkeypatch):
    async def scenario(splitter):
        assert (await splitter.split(["a"], [["text"]]))[0][0].words == ["a"]
        monkeypatch.setattr(module, "_CODE", STUCK)
        long = [asyncio.create_task(splitter.split(["x" * 40_000], [["text"]])) for _ in range(8)]
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await splitter.split(["x" * 40_000], [["text"]])
        assert (await splitter.split(["a b"], [["text"]]))[0][0].words == ["a", "b"]
        for task in long:
            task.cancel()

    with_splitter(scenario, body_bytes=40_000)


def test_a_process_ends_when_its_server_is_gone():
    async def scenario(splitter):
        await splitter.split(["a"], [["text"]])
        process = process_of(splitter)
        process.send_signal(signal.SIGTERM)  # to a whole group, as service managers do: the server decides
        (found,) = await splitter.split(["a b"], [["text"]])
        assert found[0].words == ["a", "b"]
        process.stdin.close()
        assert await process.wait() == 0

    with_splitter(scenario)
