"""Options that all commands of tasks have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EncoderOption = Annotated[
    list[str] | None,
    typer.Option(
        help="ELMo, a transformer, a vector file; may be given several times; none for no contextual vectors. "
        "[default: the model that ships]",
        show_default=False,
    ),
]
MovedOption = Annotated[
    list[str] | None, typer.Option("--encoder", help="Where its encoder is now, if it has moved; once for each.")
]
WordsOption = Annotated[Path | None, typer.Option(help="Static word vectors beside them, as GloVe's.")]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="The new folder.")]
DevOption = Annotated[Path | None, typer.Option(help="The same, to stop at the best.")]
WhereOption = Annotated[str, typer.Option(help="The vectors enter at the input, output, both, or as in taglm.")]
LayersOption = Annotated[
    str, typer.Option(help="all (a learned mix), average, top, a number, or the BERT paper's ways.")
]
FineTuneOption = Annotated[bool, typer.Option("--fine-tune", help="The encoders learn too.")]
BundleOption = Annotated[bool, typer.Option("--bundle", help="Put copies of the encoders into the folder.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue what was interrupted.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
CacheOption = Annotated[Path | None, typer.Option(help="Where vectors are kept. [default: the user's cache]")]
BudgetOption = Annotated[float, typer.Option(help="GB that the cache may take.", min=0)]
LotOption = Annotated[float, typer.Option("--held-out", help="Or: a share of TRAIN, by lot, as 0.1.", min=0, max=0.9)]
RawOption = Annotated[bool, typer.Option("--raw", help="The text is raw: cut it into words first.")]
HeaderOption = Annotated[
    bool | None, typer.Option("--header/--no-header", help="The first line names the columns. [default: found out]")
]
FormOption = Annotated[
    str | None, typer.Option("--format", help="text, json or tsv. [default: text on a terminal, else json]")
]
