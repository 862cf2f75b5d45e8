"""Command-line options that commands share: single ones, and groups of them as dataclasses."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

from typer import Argument, Option

from polyseme.cli.output import write_json
from polyseme.cli.progress import set_quiet, working
from polyseme.files import check_writable

if TYPE_CHECKING:
    from polyseme.tasks.model import TaskModel
    from polyseme.text.conll import LabelSpec

Model = TypeVar("Model", bound="TaskModel[Any, Any]")

MODELS = "An ELMo model of any format, a transformers folder or name, or a vector file"
FILES = "Text files, folders, patterns, or - (stdin)"
TEXT_FILES = f"{FILES}; .gz, .bz2, .xz and .zst too."

ModelArgument = Annotated[str, Argument(metavar="MODEL", help=f"{MODELS}; `english` comes with polyseme.")]
ShippedArgument = Annotated[str | None, Argument(metavar="MODEL", help=f"{MODELS}. [default: english]")]
ShippedOption = Annotated[str | None, Option("--model", help=f"{MODELS}. [default: english]")]
LanguageModelOption = Annotated[str | None, Option("--model", help="A model with a softmax. [default: english]")]
VocabularyOption = Annotated[Path | None, Option(help="Word list of a model that reads word ids.")]
DeviceOption = Annotated[str, Option(help="Where to compute: cpu, cuda, cuda:1, ...")]
LayerOption = Annotated[str, Option(help="all, or the number of one layer.")]
SeedOption = Annotated[int, Option(min=0, help="Seed of the random number generator.")]
RawOption = Annotated[bool, Option("--raw", help="The text is raw: split it into sentences and words first.")]
TokenizedOption = Annotated[bool, Option("--tokenized", help="One sentence per line, words separated by spaces.")]
ResumeOption = Annotated[bool, Option("--resume", help="Continue an interrupted run; begin if there is none.")]
QuietOption = Annotated[bool, Option("--quiet", "-q", help="No progress and no notes, only results and errors.")]
OverwriteOption = Annotated[bool, Option("--overwrite", help="Replace the output if it exists.")]
HeaderOption = Annotated[
    bool | None, Option("--header/--no-header", help="Whether the first line is a header. [default: detected]")
]
FormatOption = Annotated[
    str | None, Option("--format", help="text, json or tsv. [default: text on a terminal, else json]")
]
WordVectorsOption = Annotated[Path | None, Option(help="Static word vectors to add, such as GloVe's.")]


@dataclass(frozen=True)
class ResultOptions:
    """The option --json of commands that print a result, and how the result is presented."""

    json: Annotated[str | None, Option("--json", metavar="FILE", help="Write the result as JSON; - is stdout.")] = None

    def check(self) -> None:
        """Refuse output files that cannot be written, before hours of work."""
        if self.json and self.json != "-":
            check_writable(Path(self.json))

    def present(self, payload: object, show: Callable[[], None]) -> None:
        """Write the result as JSON if --json is given, and show it unless the JSON went to standard output."""
        if self.json:
            write_json(self.json, payload)
        if self.json != "-":
            show()


@dataclass(frozen=True)
class PlotOptions(ResultOptions):
    """The options --json and --plot of commands that can also draw their result."""

    plot: Annotated[Path | None, Option("--plot", metavar="FILE", help="Draw a figure: *.png, *.svg or *.pdf.")] = None

    def check(self) -> None:
        """Refuse output files that cannot be written, before hours of work."""
        super().check()
        if self.plot:
            from polyseme.plots import check_picture

            check_picture(self.plot)

    def draw(self, figure: Callable[[], Any]) -> None:
        """Make the figure and save it, if --plot asks for one."""
        if self.plot:
            from polyseme.plots import save_figure

            save_figure(figure(), self.plot)


@dataclass(frozen=True)
class LabelColumns:
    """Which columns of a CoNLL file hold the words and their labels."""

    column: Annotated[str | None, Option(help="Column of the labels: a name or number. [default: upos or last]")] = None
    feature: Annotated[str | None, Option(help="Instead of a column: a feature of CoNLL-U, like Tense.")] = None
    word_column: Annotated[int | None, Option(min=1, help="Column of the words. [default: 2 in CoNLL-U, else 1]")] = (
        None
    )

    def labels(self) -> LabelSpec:
        """The same choice of labels, as the reader of CoNLL files takes it."""
        from polyseme.text.conll import LabelSpec

        return LabelSpec(self.column, self.feature, self.word_column)


@dataclass(frozen=True)
class FitOptions:
    """The options that `tag fit`, `classify fit` and `pairs fit` share."""

    output: Annotated[Path, Option("--output", "-o", help="The folder to write the model to.")]
    dev: Annotated[Path | None, Option(help="A file like TRAIN to evaluate on; the best epoch is kept.")] = None
    held_out: Annotated[float, Option(help="Instead of --dev: a fraction of TRAIN, such as 0.1.", min=0, max=0.9)] = 0
    encoder: Annotated[
        list[str] | None,
        Option(
            help="Contextual vectors: an ELMo model, a transformer or a vector file; repeatable; or none. "
            "[default: english]"
        ),
    ] = None
    words: WordVectorsOption = None
    where: Annotated[
        str | None,
        Option(help="Where contextual vectors enter: input, output, both, or taglm. [default: input; both for pairs]"),
    ] = None
    layers: Annotated[
        str, Option(help="all (a learned mix), average, top, a number, or a mix named in the BERT paper.")
    ] = "all"
    fine_tune: Annotated[bool, Option("--fine-tune", help="Train the encoders too.")] = False
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="Change one setting, such as fit.rate=0.002; repeatable."),
    ] = None
    seed: SeedOption = 0
    bundle: Annotated[bool, Option("--bundle", help="Copy the encoders into the model's folder.")] = False
    resume: ResumeOption = False
    overwrite: OverwriteOption = False
    cache: Annotated[Path | None, Option(help="Folder that vectors are cached in. [default: the user's cache]")] = None
    budget: Annotated[float, Option(help="Largest size of the cache, in GB.", min=0)] = 16
    device: DeviceOption = "cpu"


@dataclass(frozen=True)
class EncoderOptions:
    """The options with which `predict` and `evaluate` of a task open a fitted model."""

    encoder: Annotated[list[str] | None, Option(help="New path of the encoder, if it has moved; repeatable.")] = None
    words: WordVectorsOption = None
    device: DeviceOption = "cpu"

    def open(self, model_class: type[Model], folder: Path) -> Model:
        """Load the fitted model, with its encoders."""
        with working(f"opening {folder}"):
            return model_class.load(folder, self.encoder or None, words=self.words, device=self.device)


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: a parameter that is a dataclass of options becomes one parameter for each field."""
    signature = inspect.signature(command, eval_str=True)
    hints = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = [
        field
        for name, parameter in signature.parameters.items()
        for field in (_parameters(groups[name]) if name in groups else [parameter.replace(kind=parameter.KEYWORD_ONLY)])
    ]

    @functools.wraps(command)
    def run(**given: Any) -> None:  # noqa: ANN401 - values of any option
        grouped = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **grouped)

    run.__signature__ = signature.replace(parameters=parameters)  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def with_quiet(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option --quiet, which the functions of `polyseme.cli.progress` obey."""
    signature = inspect.signature(command, eval_str=True)
    parameters = [one.replace(kind=one.KEYWORD_ONLY) for one in signature.parameters.values()]
    quiet = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=QuietOption)

    @functools.wraps(command)
    def run(quiet: bool = False, **given: Any) -> None:  # noqa: ANN401 - values of any option
        set_quiet(quiet)
        command(**given)

    run.__signature__ = signature.replace(parameters=[*parameters, quiet])  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = {one.name: one.annotation for one in (*parameters, quiet)}
    return run


def _parameters(group: type[Any]) -> Iterator[inspect.Parameter]:
    """The fields of a dataclass of options as parameters of a function."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
        )
