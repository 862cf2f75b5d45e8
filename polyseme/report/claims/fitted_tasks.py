"""Claims that need fitted tasks: the mix (5), less labelled data (6), the averaged gain (11)."""

from __future__ import annotations

from typing import Any

from polyseme.report.measure.grammar import GRAMMAR
from polyseme.report.measure.task_results import BASE, COMMAND, MIXED, difference, mean, shown, title
from polyseme.report.page.content import (
    FAILED,
    HELD,
    UNTESTED,
    Block,
    Claim,
    Command,
    Findings,
    Picture,
    Rule,
    Table,
    Text,
    Told,
    capital,
    missing_told,
)
from polyseme.report.page.drawing import Bar, bars, lines

TASKS = "tasks"
SHARES = ("1", "3", "10", "30", "100")
ROWS = {
    BASE: "without this model",
    "layer-0": "its layer 0 (spelling)",
    "layer-1": "its layer 1",
    "layer-2": "its layer 2, the top",
    "average": "all layers, equal weights",
    MIXED: "all layers, learnt weights",
    "gamma-1": "learnt weights, γ fixed at 1",
    "layer-norm": "learnt weights, layers normed",
    "output": "learnt weights, at the output",
    "both": "learnt weights, at both ends",
}


def tell_mix(findings: Findings) -> Told:
    """Held when the learnt mix beats the top layer."""
    tasks = findings.found.get(TASKS)
    if not tasks:
        return missing_told(findings, [TASKS], made_with(findings))
    pairs = {
        task: (rows[MIXED], rows["layer-2"])
        for task, rows in tasks["scores"].items()
        if rows.get(MIXED) and rows.get("layer-2")
    }
    if not pairs:
        reason = "The stored results hold no fits with the top layer of this model."
        return Told(UNTESTED, reason, made_with(findings))
    gains = {task: difference(*pair) for task, pair in pairs.items()}
    wins = [task for task, (gain, error) in gains.items() if gain > 2 * error]
    losses = [task for task, (gain, error) in gains.items() if gain < -2 * error]
    because = " ".join(f"{capital(title(task))}: {gain:+.1f} points." for task, (gain, _) in gains.items())
    rule = Rule(
        "the learnt mix of all layers scores higher than the top layer alone by more than twice the standard error "
        "over "
        "seeds in at least one task, and lower by as much in none."
    )
    blocks = (rule, *_mix_blocks(tasks["scores"], list(pairs)), *_liked(tasks["mixes"]), *made_with(findings))
    return Told(HELD if wins and not losses else FAILED, because, blocks)


def tell_data(findings: Findings) -> Told:
    """Held when a third of the labelled text does as well as all of it without the model."""
    tasks = findings.found.get(TASKS, {}).get("scores", {}).get("wnut17", {})
    curves = {
        name: [
            mean(tasks[key]) if tasks.get(key := row if share == "100" else f"{row}@{share}%") else None
            for share in SHARES
        ]
        for name, row in (("with this model", MIXED), ("without", BASE))
    }
    rule = Rule(
        "with 30 % of the labelled sentences it does at least as well as the same classifier does without it on all of "
        "them. Where that is tried by a probe: as well as its own context-free layer, and better than giving each "
        "word its "
        "usual label."
    )
    if None not in (curves["with this model"][3], curves["without"][4]):
        few, all_ = curves["with this model"][3], curves["without"][4]
        because = f"With 30 % of the sentences F1 is {few:.1f}; without the model and with all of them, {all_:.1f}."
        top = max(value for values in curves.values() for value in values if value is not None)
        figure = Picture(
            lines(curves, [f"{share} %" for share in SHARES], "of the training set", (0, 10 * (top // 10 + 1))),
            "Names in WNUT-17, F1 of a tagger (BiLSTM-CRF with GloVe and characters), means over seeds.",
        )
        return Told(HELD if few >= all_ else FAILED, because, (rule, figure, *made_with(findings)))  # pyright: ignore[reportOperatorIssue]
    grammar = findings.found.get("grammar")
    if not grammar:
        return missing_told(findings, [TASKS, "grammar"], made_with(findings))
    probe, usual = grammar["curve"], 100 * grammar["upos"]["usual"]
    few, all_ = 100 * probe["context"][3], 100 * probe["spelling"][4]
    names = {
        "all layers" if probe["view"] == "joined" else "top layer": "context",
        "layer 0, spelling alone": "spelling",
    }
    figure = Picture(
        lines(
            {name: [100 * share for share in probe[key]] for name, key in names.items()},
            [f"{count}" for count in probe["sentences"]],
            "sentences to learn from",
            (20 * (min(min(probe[key]) for key in names.values()) // 0.2), 100),
        ),
        "Parts of speech in UD-EWT by a linear probe, %.",
    )
    because = (
        f"By a probe, as no fitted tasks were given: with 30 % of the sentences {few:.1f} % of the parts of speech are "
        f"right; by the spelling alone and with all of them, {all_:.1f} %. Giving each word its usual one: "
        f"{usual:.1f} %."
    )
    blocks = (rule, figure, Text(findings.why(TASKS)), findings.again(6))
    return Told(HELD if few >= max(all_, usual) else FAILED, because, blocks)


def tell_gain(findings: Findings) -> Told:
    """Held when the tasks gain two points on average."""
    scores = findings.found.get(TASKS, {}).get("scores", {})
    both = {task: rows for task, rows in scores.items() if rows.get(BASE) and rows.get(MIXED)}
    if len(both) < 4:
        reason = findings.why(TASKS) or f"Only {len(both)} tasks were fitted with and without this model."
        return Told(UNTESTED, reason, made_with(findings))
    gains = {task: mean(rows[MIXED]) - mean(rows[BASE]) for task, rows in both.items()}
    average = mean(list(gains.values()))
    worst = min(gains, key=gains.__getitem__)
    because = (
        f"On average {average:+.1f} points over {len(gains)} tasks (published: about 3). The least is "
        f"{gains[worst]:+.1f}, {title(worst)}."
    )
    rows = [
        Bar(title(task), max(0.0, gain), colour=0 if gain > 0 else 1, said=f"{gain:+.1f}")
        for task, gain in sorted(gains.items(), key=lambda item: -item[1])
    ]
    blocks: list[Block] = [
        Rule("averaged over at least four tasks, the model adds 2 points or more, and no task loses more than one."),
        Picture(bars(rows, max(5.0, *gains.values())), "Points that the model adds."),
        Table(
            ("task", "without", "with", "gain"),
            tuple(
                (title(task), shown(rows[BASE]), shown(rows[MIXED]), f"{gains[task]:+.1f}")
                for task, rows in both.items()
            ),
            "F1 for names and chunks, accuracy for the others; mean ± deviation over seeds.",
        ),
    ]
    held = average >= 2 and min(gains.values()) >= -1
    return Told(HELD if held else FAILED, because, (*blocks, *made_with(findings)))


MIX = Claim(
    5,
    "Mixing all layers beats the top one",
    "ELMo does not hand over its top layer but a mix of all of them: γ · (s₀ · spelling + s₁ · layer 1 + s₂ · layer "
    "2). Each task "
    "learns for itself how much of each layer it likes (s) and how loud the whole should be (γ).",
    (),
    tell_mix,
    hint="The top layer is the last one; a mix takes a bit of each.",
)
LESS_DATA = Claim(
    6,
    "Less labelled text is needed",
    "Labels are written by people and cost money. Who starts from vectors that know the language already should need "
    "fewer.",
    (GRAMMAR,),
    tell_data,
    hint="Labelled text: sentences in which people have written down the right answers.",
)
GAIN = Claim(
    11,
    "Tasks gain about three points",
    "Added to a good ordinary classifier, the vectors are said to lift its score by some three points on average, "
    "over very "
    "different tasks.",
    (),
    tell_gain,
    hint="A task is a job for the vectors, such as finding names; points are those of a score out of 100.",
)


def _mix_blocks(scores: dict[str, Any], tasks: list[str]) -> list[Block]:
    table = Table(
        ("", *map(title, tasks)),
        tuple(
            (name, *(shown(scores[task].get(row)) for task in tasks))
            for row, name in ROWS.items()
            if any(scores[task].get(row) for task in tasks)
        ),
        "Mean ± deviation over seeds: what layers, γ and layer norm are worth.",
    )
    return [table]


def _liked(mixes: dict[str, Any]) -> list[Block]:
    rows = []
    for task, found in mixes.items():
        weights = [mean(list(each)) for each in zip(*(mix["weights"] for mix in found), strict=True)]
        gamma = mean([mix["gamma"] for mix in found])
        rows.append((title(task), *(f"{weight:.2f}" for weight in weights), f"{gamma:.2f}"))
    if not rows:
        return []
    count = max(map(len, rows)) - 2
    return [
        Table(
            ("task", *(f"s{number}" for number in range(count)), "γ"),
            tuple(rows),
            "What s and γ became, means over seeds.",
        )
    ]


def made_with(findings: Findings) -> tuple[Block, ...]:
    """Where numbers of fitted tasks come from."""
    read = "Read from stored results of tasks that were fitted with this very model; made with:"
    return (
        Text(read if TASKS in findings.found else "Such results are made with:"),
        Command(COMMAND.format(model=findings.model), ""),
    )
