"""Every command that writes, on inputs so small that it takes a second: for tests of locks, kills and full disks."""

import json
from dataclasses import dataclass
from pathlib import Path

from labelled_data import claims, opinions, people
from training_fixture import TABLES, write_text

TINY = str(Path(__file__).parent / "fixtures" / "tiny")
QUICK = ("fit.rate=0.02", "fit.epochs=4", "fit.epoch_steps=1", "fit.batch_size=12", "fit.average=0.5")


@dataclass(frozen=True)
class WritingCommand:
    """A command line, its output, and how a killed run goes on.

    Attributes:
        arguments: Of `polyseme`, with paths in the working folder.
        output: What it writes.
        resume: Options that continue a killed run; empty where the same command does, or begins again.
        replace: Options that replace an output that is there.
    """

    arguments: tuple[str, ...]
    output: str
    resume: tuple[str, ...] = ()
    replace: tuple[str, ...] = ("--overwrite",)


def _settings(*settings: str) -> tuple[str, ...]:
    return tuple(part for setting in settings for part in ("--set", setting))


def _train(output: str, **training: object) -> tuple[str, ...]:
    tables = {**TABLES, "training": {**TABLES["training"], **training}}
    return ("train", "text.txt", "-o", output, "--tokenized", *_settings(*_flat(tables)))


def _flat(tables: dict, where: str = "") -> list[str]:
    nested = (
        _flat(value, f"{where}{name}.") if isinstance(value, dict) else [f"{where}{name}={json.dumps(value)}"]
        for name, value in tables.items()
    )
    return [setting for settings in nested for setting in settings]


RESUME = ("--resume",)
COMMANDS = {
    "embed": WritingCommand(("embed", "corpus.txt", "-o", "out.npz", "--model", TINY), "out.npz", RESUME),
    "index": WritingCommand(("index", "corpus.txt", "-o", "out", "--model", TINY), "out", RESUME),
    "convert": WritingCommand(("convert", TINY, "out"), "out"),
    "convert to HDF5": WritingCommand(("convert", TINY, "out.hdf5"), "out.hdf5"),
    "distil": WritingCommand(("distil", TINY, "corpus.txt", "-o", "out.txt", "--min-count", "1"), "out.txt"),
    "tag fit": WritingCommand(
        ("tag", "fit", "train.conll", "-o", "out", "--encoder", TINY, *_settings("tagger.cells=10", *QUICK)),
        "out",
        RESUME,
    ),
    "classify fit": WritingCommand(
        ("classify", "fit", "train.txt", "-o", "out", "--encoder", TINY, *_settings("classifier.cells=10", *QUICK)),
        "out",
        RESUME,
    ),
    "pairs fit": WritingCommand(
        ("pairs", "fit", "train.tsv", "-o", "out", "--encoder", TINY, *_settings("pairs.cells=10", *QUICK)),
        "out",
        RESUME,
    ),
    "report": WritingCommand(("report", TINY, "-o", "out", "--only", "1", "--only", "tour"), "out", replace=()),
    "train": WritingCommand(_train("out", save_seconds=0), "out", RESUME),
}


def write_inputs(folder: Path) -> None:
    """Write the texts and labelled files that the commands read."""
    write_text(folder / "text.txt")
    (folder / "corpus.txt").write_text("".join(f"{' '.join(words)}\n" for words in people(40)[0]))
    blocks = ("\n".join(map(" ".join, zip(*pair, strict=True))) for pair in zip(*people(40), strict=True))
    (folder / "train.conll").write_text("\n\n".join(blocks) + "\n")
    lines = (f"{label} {' '.join(words)}\n" for words, label in zip(*opinions(60), strict=True))
    (folder / "train.txt").write_text("".join(lines))
    rows = (f"{' '.join(one)}\t{' '.join(two)}\t{label}\n" for (one, two), label in zip(*claims(60), strict=True))
    (folder / "train.tsv").write_text("sentence_A\tsentence_B\tlabel\n" + "".join(rows))


def contents(output: Path) -> dict[str, bytes] | None:
    """The bytes of an output by file name, without timings, which differ; None where there is none."""
    if not output.exists():
        return None
    files = [output] if output.is_file() else sorted(path for path in output.rglob("*") if path.is_file())
    return {str(path.relative_to(output)): path.read_bytes() for path in files if path.name != "timings.json"}
