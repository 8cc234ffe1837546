"""`teeter measure` and `teeter doctor`: any model on any data."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from teeter.cli.app import JsonOption, app, print_json
from teeter.cli.mapping import check_places, draw_map
from teeter.cli.opening import open_given

if TYPE_CHECKING:
    from teeter.measure import Sensitivity

__all__ = ["doctor", "measure"]

PERTURB = (
    "bit, bit01, token or token:VOCABULARY, patch:SIZE, patch-replace:SIZE, input, weights, embedding or "
    "embedding:MODULE, hidden:MODULE."
)
# Why a measurement stopped, in words.
_STOPPED = {
    "precision": "precise enough",
    "half-width": "narrow enough",
    "budget": "the budget is spent",
    "design": "the design is complete",
    "inputs": "more draws would tell little more, more inputs would",
    "interrupted": "interrupted",
}
ModelArgument = Annotated[
    str,
    typer.Argument(
        help="A folder that save_pretrained wrote, module:name of a model or a factory, or a name from teeter.models."
    ),
]
WeightsOption = Annotated[
    Path | None, typer.Option("--weights", help="A file of weights, safetensors or torch's, for MODEL.")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="A size of a MODEL from teeter.models, such as length=10; repeatable.")
]
DataArgument = Annotated[
    Path,
    typer.Argument(
        help="An .npz or .npy file of arrays, a .csv file of texts, a folder of images, or a data set by name, such as "
        "cifar10 (add :test for the test images; teeter data list)."
    ),
]
PerturbOption = Annotated[str, typer.Option("--perturb", help=PERTURB)]
Sigma2Option = Annotated[float | None, typer.Option("--sigma2", help="Variance of the noise (1 if none).")]
RelativeOption = Annotated[bool, typer.Option("--relative", help="Noise in units of the token's RMS.")]
SeedOption = Annotated[int, typer.Option("--seed", help="The same seed gives the same flips.")]
LimitOption = Annotated[int | None, typer.Option("--limit", help="Take a random so many of the inputs.")]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, mps.")]
ColumnOption = Annotated[str, typer.Option("--text-column", help="Column of a .csv that holds the texts.")]
TokenizerOption = Annotated[Path | None, typer.Option("--tokenizer", help="Folder of the tokenizer, if not MODEL.")]
LengthOption = Annotated[int | None, typer.Option("--max-length", help="Tokens to cut texts to.")]
SpecialOption = Annotated[
    bool, typer.Option("--special-tokens/--no-special-tokens", help="Nudge [CLS], [SEP] and their kind as well.")
]
SizeOption = Annotated[int | None, typer.Option("--image-size", help="Shortest side, then a square from the centre.")]
MeanOption = Annotated[str | None, typer.Option("--mean", help="Of pixels from 0 to 1: R,G,B; one number for gray.")]
StdOption = Annotated[str | None, typer.Option("--std", help="Likewise.")]


@app.command()
def measure(
    model: ModelArgument,
    data: DataArgument,
    perturb: PerturbOption,
    sigma2: Sigma2Option = None,
    relative: RelativeOption = False,
    precision: Annotated[float | None, typer.Option("--precision", help="Relative half-width (0.05 if none).")] = None,
    half_width: Annotated[float | None, typer.Option("--half-width", help="Absolute half-width.")] = None,
    budget: Annotated[int | None, typer.Option("--budget", help="Forwards to spend at most.")] = None,
    confidence: Annotated[float, typer.Option("--confidence", help="Of the interval.")] = 0.95,
    design: Annotated[
        str | None, typer.Option("--design", help="adaptive, broad, or paper (all tokens of every input).")
    ] = None,
    seed: SeedOption = 0,
    weights: WeightsOption = None,
    options: SetOption = None,
    limit: LimitOption = None,
    device: DeviceOption = "cpu",
    arithmetic: Annotated[
        str | None, typer.Option("--arithmetic", help="float32, tf32 or bf16; says what that does to the answer.")
    ] = None,
    compile: Annotated[
        bool, typer.Option("--compile", help="Compile the model; pays from a million forwards.")
    ] = False,
    text_column: ColumnOption = "text",
    tokenizer: TokenizerOption = None,
    max_length: LengthOption = None,
    special_tokens: SpecialOption = False,
    image_size: SizeOption = None,
    mean: MeanOption = None,
    std: StdOption = None,
    picture: Annotated[Path | None, typer.Option("--map", help="Draw where it changes its mind to this file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """How sensitive is a model? One number with its interval, and a picture."""
    from teeter.measure import sensitivity
    from teeter.perturb.inputs import count
    from teeter.products import quick_products
    from teeter.report import drawable

    if picture is not None:
        drawable(picture)
    loaded, nudge = open_given(locals())
    if picture is not None:
        check_places(loaded, nudge, perturb)
    chosen: dict[str, Any] = {} if design is None else {"design": design}
    with _bar("measuring") as tell, quick_products():
        result = sensitivity(
            loaded.model,
            loaded.inputs,
            nudge,
            precision=precision,
            half_width=half_width,
            budget=budget,
            confidence=confidence,
            seed=seed,
            arithmetic=arithmetic,
            compile=compile,
            progress=lambda now: tell(
                f"{now.value:.4g} [{now.low:.4g}, {now.high:.4g}]", _share(now, precision, half_width, budget)
            ),
            **chosen,
        )
    facts = {"value": result.value, "low": result.low, "high": result.high, "confidence": result.confidence}
    facts |= {"n": result.n, "draws": result.draws, "forwards": result.forwards, "design": result.design}
    if loaded.untrained:
        result = replace(result, notes=(*result.notes, f"{model} is untrained: its weights are random"))
    facts |= {"stopped": result.stopped, "notes": list(result.notes)}
    if result.effect is not None:
        effect = result.effect
        facts |= {"arithmetic": arithmetic, "effect": {"value": effect.value, "low": effect.low, "high": effect.high}}
    if as_json:
        about = {
            "model": model,
            "weights": weights and str(weights),
            "data": str(data),
            "inputs": count(loaded.inputs),
            "perturb": perturb,
        }
        strength = {"sigma2": getattr(nudge, "sigma2", None), "relative": relative}
        print_json({**about, **strength, "seed": seed, **facts})
    else:
        _say(result, confidence, arithmetic)
    if picture is not None:
        with _bar("drawing") as tell, quick_products():
            drawn = draw_map(loaded, nudge, seed, picture, lambda done, total: tell("", done / total))
        print(f"picture: {drawn}", file=sys.stderr)


def _say(result: Sensitivity, confidence: float, arithmetic: str | None) -> None:
    print(f"sensitivity {result!r} ({100 * confidence:g} %)")
    print(f"{result.n} inputs, {result.draws} draws, {result.forwards} forwards; stopped: {_STOPPED[result.stopped]}")
    if result.effect is not None:
        print(f"{arithmetic} adds {result.effect!r} to what float32 gives, on the {result.effect.n} inputs compared")
    for note in result.notes:
        print(f"note: {note}")


@app.command()
def doctor(
    model: ModelArgument,
    data: DataArgument,
    perturb: Annotated[str | None, typer.Option("--perturb", help=PERTURB)] = None,
    sigma2: Sigma2Option = None,
    relative: RelativeOption = False,
    seed: SeedOption = 0,
    weights: WeightsOption = None,
    options: SetOption = None,
    limit: LimitOption = None,
    device: DeviceOption = "cpu",
    text_column: ColumnOption = "text",
    tokenizer: TokenizerOption = None,
    max_length: LengthOption = None,
    special_tokens: SpecialOption = False,
    image_size: SizeOption = None,
    mean: MeanOption = None,
    std: StdOption = None,
    as_json: JsonOption = False,
) -> None:
    """Is what would be measured what was meant? Exit code 1 if something is wrong."""
    from teeter.measure import doctor as look

    loaded, nudge = open_given(locals())
    findings = look(loaded.model, loaded.inputs, nudge)
    if as_json:
        print_json({"findings": [{"wrong": finding.wrong, "what": finding.what} for finding in findings]})
    else:
        print("\n".join(str(finding) for finding in findings) or "nothing wrong")
    if any(finding.wrong for finding in findings):
        raise typer.Exit(1)


def _share(now: Sensitivity, precision: float | None, half_width: float | None, budget: int | None) -> float | None:
    """How much of the way is done, if that can be told: an interval narrows with the root of the forwards."""
    shares = [now.forwards / budget] if budget else []
    if precision is None and half_width is None and budget is None and now.design != "paper":
        precision = 0.05
    for goal in (half_width, precision and precision * abs(now.value)):
        if goal and now.half_width:
            shares.append((goal / now.half_width) ** 2)
    return min(1.0, max(shares)) if shares else None


@contextmanager
def _bar(label: str) -> Iterator[Callable[[str, float | None], None]]:
    """A bar on a terminal's stderr, told what to say and how much of the way is done; it leaves nothing behind."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn(label), BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    hidden = not console.is_terminal
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=None)
        yield lambda words, share: bar.update(
            task, description=words, completed=share or 0, total=None if share is None else 1
        )
