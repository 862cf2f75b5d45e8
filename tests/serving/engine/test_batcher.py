"""The request queue: what is batched together, and in which order; admission control and limits."""

import asyncio
import threading

import pytest

from polyseme.errors import ConfigError, InputError
from polyseme.serving.engine.admission import Admission, OverloadedError
from polyseme.serving.engine.batcher import Batcher, BatchFunction
from polyseme.serving.engine.metrics import Metrics
from polyseme.serving.http.errors import from_exception
from polyseme.serving.settings import Limits, ServeSettings, parse_limits


class Recorder:
    """Doubles numbers, and remembers its batches; the first one waits until it is let go."""

    def __init__(self):
        self.function = BatchFunction("recorder", self.compute)
        self.begun, self.go, self.batches = threading.Event(), threading.Event(), []

    def compute(self, numbers):
        self.batches.append(list(numbers))
        self.begun.set()
        assert self.go.wait(60)
        if -1 in numbers:
            raise InputError("minus one is too small")
        return [2 * number for number in numbers]


def in_batcher(scenario, budget=10):
    """Run a scenario beside a batcher of its own."""

    async def whole():
        batcher = Batcher(budget, Metrics())
        batcher.start()
        try:
            return await scenario(batcher)
        finally:
            await asyncio.to_thread(batcher.close)

    return asyncio.run(whole())


async def begun(batcher, recorder, *tickets):
    """Tasks for some tickets of items that cost one word each, all of them waiting behind the first."""
    tasks = [asyncio.create_task(batcher.run(recorder.function, items, [1] * len(items))) for items in tickets]
    await asyncio.to_thread(recorder.begun.wait)
    await asyncio.sleep(0)
    return tasks


def test_what_waits_is_computed_together_and_comes_back_in_order():
    recorder = Recorder()

    async def scenario(batcher):
        tasks = await begun(batcher, recorder, [0])
        tasks += [asyncio.create_task(batcher.run(recorder.function, [k, k + 1], [1, 1])) for k in (10, 20, 30)]
        await asyncio.sleep(0)
        recorder.go.set()
        return await asyncio.gather(*tasks)

    assert in_batcher(scenario) == [[0], [20, 22], [40, 42], [60, 62]]
    assert recorder.batches == [[0], [10, 11, 20, 21, 30, 31]]


def test_a_long_request_does_not_hold_up_a_short_one():
    recorder = Recorder()

    async def scenario(batcher):
        first = await begun(batcher, recorder, [0])
        long = asyncio.create_task(batcher.run(recorder.function, list(range(100, 140)), [1] * 40))
        await asyncio.sleep(0)
        short = asyncio.create_task(batcher.run(recorder.function, [1], [1]))
        await asyncio.sleep(0)
        recorder.go.set()
        return await asyncio.gather(*first, long, short)

    assert in_batcher(scenario)[1] == [2 * number for number in range(100, 140)]
    assert 1 in recorder.batches[1]
    assert max(map(len, recorder.batches)) == 10


def test_a_single_giant_is_computed_by_itself():
    recorder = Recorder()
    recorder.go.set()

    async def scenario(batcher):
        return await asyncio.gather(
            batcher.run(recorder.function, [1], [1000]), batcher.run(recorder.function, [2, 3], [9, 1000])
        )

    assert in_batcher(scenario) == [[2], [4, 6]]


def test_what_nobody_waits_for_is_never_computed():
    recorder = Recorder()

    async def scenario(batcher):
        first = await begun(batcher, recorder, [0])
        leaving = asyncio.create_task(batcher.run(recorder.function, [7], [1]))
        staying = asyncio.create_task(batcher.run(recorder.function, [8], [1]))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        recorder.go.set()
        return await asyncio.gather(*first, staying)

    assert in_batcher(scenario) == [[0], [16]]
    assert recorder.batches == [[0], [8]]


def test_a_request_that_fails_does_not_take_its_company_with_it():
    recorder = Recorder()

    async def scenario(batcher):
        first = await begun(batcher, recorder, [0])
        tasks = [asyncio.create_task(batcher.run(recorder.function, [number], [1])) for number in (5, -1, 6)]
        await asyncio.sleep(0)
        recorder.go.set()
        return await asyncio.gather(*first, *tasks, return_exceptions=True)

    found = in_batcher(scenario)
    assert (found[1], found[3]) == ([10], [12])
    assert isinstance(found[2], InputError)


def test_functions_take_turns():
    one, other = Recorder(), Recorder()
    other.go.set()

    async def scenario(batcher):
        tasks = await begun(batcher, one, [0])
        for recorder, number in ((one, 1), (other, 2), (one, 3), (other, 4)):
            tasks.append(asyncio.create_task(batcher.run(recorder.function, [number], [1])))
        await asyncio.sleep(0)
        one.go.set()
        return await asyncio.gather(*tasks)

    assert in_batcher(scenario) == [[0], [2], [4], [6], [8]]
    assert (one.batches, other.batches) == ([[0], [1, 3]], [[2, 4]])


def test_words_that_cannot_be_answered_in_time_are_not_let_in():
    now = [0.0]
    admission = Admission(Limits(queue_words=100, batch_words=25, deadline=10), clock=lambda: now[0])
    admission.enter(80)
    with pytest.raises(OverloadedError, match="try again in 1 second") as refused:
        admission.enter(30)
    error = from_exception(refused.value)
    assert (error.status, error.headers) == (429, {"Retry-After": "1"})
    now[0] = 20.0
    admission.leave(80, answered=True)  # four words a second: twelve may wait, for three seconds
    admission.enter(60)  # nobody is there
    with pytest.raises(OverloadedError, match="try again in 15 seconds"):
        admission.enter(1)
    assert admission.refusal() is not None
    now[0] = 20.1
    admission.leave(60, answered=False)
    admission.enter(11)
    assert admission.refusal() is None
    with pytest.raises(OverloadedError):
        admission.enter(2)


def test_limits_are_read_and_wrong_ones_refused_by_name():
    assert parse_limits(["words=7", "deadline=0.5"]) == Limits(words=7, deadline=0.5)
    for wrong, message in [("word=7", "Did you mean 'words'"), ("words=x", "words=10"), ("words=0", "above 0")]:
        with pytest.raises(ConfigError, match=message):
            parse_limits([wrong])
    for wrong in ("deadline=inf", "deadline=1e300", "queue_words=" + "9" * 23):
        with pytest.raises(ConfigError, match=r"must be a finite number, at most 9,007,199,254,740,992$"):
            parse_limits([wrong])
    with pytest.raises(ConfigError, match="8 characters"):
        ServeSettings(key="short")
    with pytest.raises(ConfigError, match=r"https://example\.org"):
        ServeSettings(origins=("example.org",))
