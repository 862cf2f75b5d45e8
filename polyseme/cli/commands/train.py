"""``polyseme train``: a bidirectional language model, trained on your text."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from polyseme.cli.options import TEXT_FILES, DeviceOption, OverwriteOption, ResumeOption, TokenizedOption
from polyseme.cli.progress import is_quiet

if TYPE_CHECKING:
    from polyseme.training.run import Event, TrainJob

TEACHER_WORDS = 8192  # that a teacher reads at a time: all words of a step


def train(
    texts: Annotated[list[str], Argument(metavar="TEXT", help=TEXT_FILES)],
    output: Annotated[Path, Option("--output", "-o", help="The folder to write the model to.")],
    preset: Annotated[
        str | None, Option(help="tiny, small, medium or original. [default: by size of the text]")
    ] = None,
    recipe: Annotated[str, Option(help="modern, or bilm-tf: the published recipe.")] = "modern",
    config: Annotated[Path | None, Option(help="A TOML file of settings.")] = None,
    changes: Annotated[
        list[str] | None,
        Option("--set", metavar="TABLE.SETTING=VALUE", help="Change one setting, like training.epochs=3; repeatable."),
    ] = None,
    tokenized: TokenizedOption = False,
    device: DeviceOption = "cpu",
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    start_from: Annotated[Path | None, Option("--from", help="Start from the weights of this model.")] = None,
    extend_vocabulary: Annotated[
        bool, Option("--extend-vocabulary", help="With --from: learn to predict new words too.")
    ] = False,
    teacher: Annotated[
        str | None,
        Option(
            metavar="MODEL", help="Learn from the word vectors of this model too; settings: --set teacher.weight=2."
        ),
    ] = None,
    also_evaluate: Annotated[
        list[str] | None, Option(metavar="TEXT", help="Evaluate on this text too, such as the old domain.")
    ] = None,
    workers: Annotated[int | None, Option(help="Processes that read text. [default: one per core]")] = None,
    tensorboard: Annotated[Path | None, Option(metavar="DIR", help="Write TensorBoard scalars to this folder.")] = None,
) -> None:
    """Train a bidirectional language model on your text.

    It is evaluated on held-out text as it goes. After an interruption, --resume continues to the same result. On many
    GPUs: torchrun --nproc-per-node N -m polyseme train ... --device cuda
    """
    from polyseme.loading import load
    from polyseme.training.run import TrainJob
    from polyseme.training.settings import merge_tables, parse_set, read_settings

    tables = merge_tables(dict(read_settings(config)) if config else {}, parse_set(changes or []))
    if tokenized:
        tables = merge_tables(tables, {"data": {"tokenized": True}})
    job = TrainJob(
        texts=texts,
        output=output,
        preset=preset,
        recipe=recipe,
        changes=tables,
        device=device,
        resume=resume,
        overwrite=overwrite,
        start_from=start_from,
        extend=extend_vocabulary,
        teacher=load(teacher, device=device, word_budget=TEACHER_WORDS) if teacher else None,
        other_texts=tuple(also_evaluate or ()),
        workers=workers,
    )
    _run(job, tensorboard)


def _run(job: TrainJob, tensorboard: Path | None) -> None:
    from polyseme.training.events import announce_stop, describe_interruption
    from polyseme.training.loop.distributed import is_leader
    from polyseme.training.run import TrainFinished, TrainPlan
    from polyseme.training.run import train as begin
    from polyseme.training.signals import GracefulStop

    event = None
    with suppress(KeyboardInterrupt), GracefulStop(announce_stop) as stop, _Screen(tensorboard) as screen:
        for event in begin(job, lambda: stop.requested):
            stop.defer = stop.defer or isinstance(event, TrainPlan)
            screen.show(event)
    if not isinstance(event, TrainFinished):
        if is_leader():
            typer.echo(describe_interruption(job.run), err=True)
        raise SystemExit(130)


class _Screen:
    """Progress bar on a terminal, and the lines of a run's log."""

    def __init__(self, tensorboard: Path | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        from polyseme.training.events import EventFormatter
        from polyseme.training.loop.distributed import is_leader

        console = Console(stderr=True, highlight=False)
        live = console.is_terminal and is_leader() and not is_quiet()
        self._silent = is_quiet() or not is_leader()
        self._formatter = EventFormatter(every=0.5 if live else 10.0)
        self._live = live
        self._bar = Progress(
            BarColumn(bar_width=12),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not live,
        )
        self._task = self._bar.add_task("reading the text ...", total=None)
        self._board = _Board(tensorboard) if tensorboard and is_leader() else None

    def __enter__(self) -> _Screen:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        if self._board:
            self._board.close()

    def show(self, event: Event) -> None:
        from polyseme.training.loop.trainer import StepReport
        from polyseme.training.run import TrainPlan
        from polyseme.training.shards.prepare import PrepareProgress

        if self._silent:
            return
        if self._board:
            self._board.add(event)
        line = self._formatter.format(event)
        if isinstance(event, StepReport) and self._live:
            self._bar.update(self._task, total=event.steps, completed=event.step)
        elif isinstance(event, PrepareProgress) and not event.finished and self._live:
            self._bar.update(self._task, description=f"reading the text: {event.bytes_read / 1e6:,.1f} MB", total=None)
        elif isinstance(event, TrainPlan):
            self._bar.update(self._task, description="starting ...")
        if line and isinstance(event, StepReport) and self._live:
            self._bar.update(self._task, description=line)
        elif line:
            self._bar.console.print(line, markup=False, soft_wrap=True)


class _Board:
    """Writer of TensorBoard scalars: loss, learning rate, perplexity."""

    def __init__(self, folder: Path) -> None:
        from polyseme.errors import require

        require("tensorboard", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def add(self, event: Event) -> None:
        from polyseme.training.loop.trainer import StepReport
        from polyseme.training.run import Evaluation

        if isinstance(event, StepReport) and event.step % 10 == 0:
            scalars = {"loss": event.loss, "learning rate": event.learning_rate, "gradient norm": event.gradient_norm}
            for name, value in scalars.items():
                self._writer.add_scalar(f"training/{name}", value, event.tokens)
        elif isinstance(event, Evaluation):
            for name in ("fresh", "carried"):
                value = getattr(event, name).both
                self._writer.add_scalar(f"perplexity/{event.text}, {name}", value, event.step)

    def close(self) -> None:
        self._writer.close()
