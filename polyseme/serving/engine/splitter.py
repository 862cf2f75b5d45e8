"""Tokenising in helper processes: off the event loop, and abandoned at the deadline or when the client leaves.

A thread would not do: one match of a regular expression cannot be interrupted, and stops every other thread meanwhile.
Texts of ordinary length have a process of their own, so that they do not wait behind long ones.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

import polyseme
from polyseme.serving.engine.admission import OverloadedError
from polyseme.serving.engine.sizes import Place, TooLargeError
from polyseme.serving.engine.split_worker import LENGTH
from polyseme.serving.settings import Limits
from polyseme.text.tokenizer import TokenizedSentence

_ORDINARY = 32_768  # characters: a little more than the words that a request may have
_WAITING_BODIES = 8  # as many characters as so many of the largest bodies may wait for one process
# The worker finds the same package as this process, and nothing in the working directory.
_CODE = "import sys; sys.path[0] = sys.argv[1]; from polyseme.serving.engine.split_worker import main; main()"
_ROOT = str(Path(polyseme.__file__).parent.parent)


class Splitter:
    """Splits raw texts into sentences and words, within the limits, in two helper processes."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._message_limits = asdict(limits)
        self._ordinary, self._long = _Worker(limits), _Worker(limits)

    async def start(self) -> None:
        """Start the process for ordinary texts, so that the first request does not wait for it."""
        await self.split([""], [()])

    async def split(self, texts: Sequence[str], places: Sequence[Place]) -> list[list[TokenizedSentence]]:
        """The sentences of each text; raises `TooLargeError` with the place of the text that exceeds a limit."""
        if not texts:
            return []
        size = sum(map(len, texts))
        worker = self._ordinary if size <= _ORDINARY else self._long
        try:
            answer = await worker.ask({"texts": texts, "limits": self._message_limits}, size)
        except asyncio.TimeoutError:
            seconds = self._limits.split_seconds
            message = f"the text takes longer than {seconds:g} s to split into words; send less at a time"
            raise TooLargeError(message, places[0]) from None
        if "refused" in answer:
            raise TooLargeError(answer["message"], [*places[answer["refused"]], *answer["where"]])
        return [
            [_sentence(text, spans) for spans in sentences]
            for text, sentences in zip(texts, answer["spans"], strict=True)
        ]

    def stop(self) -> list[Process]:
        """End the processes at once, and return those that were running."""
        return [process for worker in (self._ordinary, self._long) if (process := worker.stop())]

    async def close(self) -> None:
        """End the processes, and wait until they have."""
        for process in self.stop():
            await process.wait()


def _sentence(text: str, spans: list[list[int]]) -> TokenizedSentence:
    return TokenizedSentence([text[start:end] for start, end in spans], [(start, end) for start, end in spans])


class _Worker:
    """One tokenizer process, started when needed; it answers one message at a time."""

    def __init__(self, limits: Limits) -> None:
        self._seconds, self._most_waiting = limits.split_seconds, _WAITING_BODIES * limits.body_bytes
        self._free = asyncio.Lock()
        self._waiting = 0  # characters
        self._process: Process | None = None

    async def ask(self, message: dict[str, Any], size: int) -> dict[str, Any]:
        """The answer to a message; cancelling this call, or a timeout, ends the process."""
        if self._waiting and self._waiting + size > self._most_waiting:
            raise OverloadedError(self._seconds)
        self._waiting += size
        try:
            async with self._free:
                return await self._ask(message)
        finally:
            self._waiting -= size

    async def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            if self._process is None or self._process.returncode is not None:
                self._process = await _start()
            return await asyncio.wait_for(_exchange(self._process, orjson.dumps(message)), self._seconds)
        except (asyncio.IncompleteReadError, ConnectionError):  # somebody has ended it
            self.stop()
            raise OverloadedError(1) from None
        except BaseException:  # a half-read answer must not be taken for the next one
            self.stop()
            raise

    def stop(self) -> Process | None:
        """End the process, whatever it is doing, and return it."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        return process


async def _start() -> Process:
    """A new process, in a session of its own: Ctrl-C in a terminal is for the server."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CODE, _ROOT, stdin=PIPE, stdout=PIPE, start_new_session=True
    )


async def _exchange(process: Process, message: bytes) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(LENGTH.pack(len(message)) + message)
    await process.stdin.drain()
    (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
    return orjson.loads(await process.stdout.readexactly(length))
