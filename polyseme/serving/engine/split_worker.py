"""The tokenizer process: reads texts from standard input, writes the spans of their words to standard output.

Messages are JSON after four bytes with their length. This process imports little, so that it starts fast.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

from polyseme.serving.engine.sizes import TooLargeError, tokenize_within
from polyseme.serving.settings import Limits

LENGTH = struct.Struct("<I")


def main() -> None:
    """Answer messages until the server closes the pipe; signals are for the server, which stops this process."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    messages: SimpleQueue[dict[str, Any]] = SimpleQueue()
    Thread(target=_receive, args=(messages,), daemon=True).start()
    while True:
        _write(sys.stdout.buffer, _answer(messages.get()))


def _receive(messages: SimpleQueue[dict[str, Any]]) -> None:
    """Read messages; when the server is gone, end the process, even in the middle of a text."""
    while (message := _read(sys.stdin.buffer)) is not None:
        messages.put(message)
    os._exit(0)


def _answer(message: dict[str, Any]) -> dict[str, Any]:
    """Spans of the words of each sentence of each text; or the first text that is too large, and why."""
    limits = Limits(**message["limits"])
    spans: list[list[list[tuple[int, int]]]] = []
    for number, text in enumerate(message["texts"]):
        try:
            spans.append([sentence.spans for sentence in tokenize_within(text, limits)])
        except TooLargeError as error:
            return {"refused": number, "message": str(error), "where": error.where}
    return {"spans": spans}


def _read(stream: BinaryIO) -> dict[str, Any] | None:
    head = stream.read(LENGTH.size)
    return json.loads(stream.read(LENGTH.unpack(head)[0])) if len(head) == LENGTH.size else None


def _write(stream: BinaryIO, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    stream.write(LENGTH.pack(len(body)) + body)
    stream.flush()
