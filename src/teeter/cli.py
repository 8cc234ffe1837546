"""The command line. Heavy imports wait until a command needs them, so that --help answers at once."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console

from teeter.errors import TeeterError, UnknownName

if TYPE_CHECKING:
    from teeter.cube import Analysis
    from teeter.runs import Store
    from teeter.studies import Outcome, Study

__all__ = ["app", "main"]

app = typer.Typer(
    help="How easily does a neural network change its mind?",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
study_app = typer.Typer(help="The experiments of both papers: list them, run them, show what came out.")
app.add_typer(study_app, name="study")

StoreOption = Annotated[
    Path, typer.Option("--store", envvar="TEETER_STORE", help="Folder that keeps finished runs.", show_default=True)
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON value on stdout and nothing else there.")]
DEFAULT_STORE = Path("teeter-runs")


def main() -> NoReturn:
    """Run the command line; whatever a user can mend ends in one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ✓ gets ? instead of an error
    stopped = "stopped; finished runs are kept and the same command goes on from there"
    try:
        code = app(standalone_mode=False) or 0
    except TeeterError as problem:
        _fail(str(problem))
    except (KeyboardInterrupt, typer.Abort):
        _fail(stopped, code=130)
    except SystemExit as end:  # some versions of typer end an interrupted command themselves
        code = end.code
    except OSError as problem:
        where = f": {problem.filename}" if problem.filename else ""
        _fail(f"{problem.strerror or problem}{where}")
    except Exception as problem:
        usage = getattr(problem, "format_message", None)  # what typer raises for a command line it cannot read
        if usage is not None:
            _fail(f"{usage().rstrip('.')}. Try 'teeter --help'.")
        if os.environ.get("TEETER_TRACEBACK"):
            raise
        _fail(f"{type(problem).__name__}: {problem} (a bug in teeter; TEETER_TRACEBACK=1 shows where)")
    if code == 130:
        _fail(stopped, code=130)
    sys.exit(code)


def _fail(message: str, code: int = 2) -> NoReturn:
    print("teeter: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1))


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        import teeter

        print(teeter.__version__)
    elif context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the report and its runs.")] = Path("demo"),
) -> None:
    """Run every study at its small tier and write the report: minutes, on two cores."""
    from teeter.report import claims_table, write_page
    from teeter.runs import Store
    from teeter.studies import STUDIES

    store = Store(out / "store")
    outcomes = [_execute(study, "small", store) for study in STUDIES.values()]
    place = write_page(store, out)
    for outcome in outcomes:
        Console().print(claims_table(outcome))
    print(f"report: {place}")


@app.command()
def cube(
    name: Annotated[str, typer.Argument(help="parity, majority, first, mean, sparse-parity, tribes, ...")],
    n: Annotated[int, typer.Option("--n", help="Number of bits.")],
    k: Annotated[
        int | None, typer.Option("--k", help="Parameter of sparse-parity, dictator, threshold, tribes.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Which random-function.")] = 0,
    rho: Annotated[float, typer.Option("--rho", min=-1, max=1, help="Correlation for noise stability.")] = 0.9,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw to this file (.svg, .png, .pdf).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Exact sensitivity and spectrum of a function on n bits."""
    from teeter import cube as room
    from teeter.report import cube_figure, drawable, save

    if plot is not None:
        drawable(plot)
    result = room.analyse(room.truth_table(room.function(name, k=k, seed=seed), n))
    drawn = None if plot is None else save(lambda: cube_figure(result, f"{name}, n = {n}"), plot)
    facts = _facts(result, rho)
    if as_json:
        _print_json({"function": name, "n": n, "k": k, "seed": seed, "rho": rho, **facts})  # k, seed as given
        return
    from rich.table import Table

    table = Table(title=f"{name} on n = {n} bits", title_justify="left", title_style="bold", show_header=False)
    for label, value in facts.items():
        if value is not None:
            table.add_row(label.replace("_", " "), _words(value))
    Console().print(table)
    if drawn is not None:
        print(f"picture: {drawn}", file=sys.stderr)


def _facts(result: Analysis, rho: float) -> dict[str, Any]:
    return {
        "average_sensitivity": result.average_sensitivity,
        "max_sensitivity": result.max_sensitivity,
        "degree": result.degree,
        "noise_stability": result.noise_stability(rho),
        "flip_probability": result.flip_probability(rho),
        "influences": result.influences.tolist(),
        "degree_profile": result.profile.tolist(),
    }


def _words(value: float | int | list[float]) -> str:
    if not isinstance(value, list):
        return f"{value:.10g}"
    same = len({f"{v:.10g}" for v in value}) == 1 and len(value) > 1
    return f"{value[0]:.6g} for every bit" if same else "  ".join(f"{v:.4g}" for v in value)


PerturbOption = Annotated[
    str,
    typer.Option(
        "--perturb",
        help="bit, bit01, token:VOCABULARY, patch:SIZE, patch-replace:SIZE, input, weights, embedding or "
        "embedding:MODULE, hidden:MODULE.",
    ),
]
ModelArgument = Annotated[str, typer.Argument(help="module:name of a model or of a factory without arguments.")]
DataArgument = Annotated[Path, typer.Argument(help="An .npz or .npy file; several arrays are a mapping.")]
Sigma2Option = Annotated[float, typer.Option("--sigma2", help="Variance of the noise.")]


@app.command()
def measure(
    model: ModelArgument,
    data: DataArgument,
    perturb: PerturbOption,
    sigma2: Sigma2Option = 1.0,
    relative: Annotated[bool, typer.Option("--relative", help="Noise in units of the token's RMS.")] = False,
    precision: Annotated[float | None, typer.Option("--precision", help="Relative half-width (0.05 if none).")] = None,
    half_width: Annotated[float | None, typer.Option("--half-width", help="Absolute half-width.")] = None,
    budget: Annotated[int | None, typer.Option("--budget", help="Forwards to spend at most.")] = None,
    confidence: Annotated[float, typer.Option("--confidence", help="Of the interval.")] = 0.95,
    design: Annotated[str, typer.Option("--design", help="broad, or paper (all tokens of every input).")] = "broad",
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same flips.")] = 0,
    picture: Annotated[Path | None, typer.Option("--map", help="Draw where it changes its mind to this file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """How sensitive is a model? One number with its interval, and a picture."""
    from teeter.integrations import load_inputs, load_model
    from teeter.measure import sensitivity
    from teeter.perturb import by_name
    from teeter.report import drawable

    if picture is not None:
        drawable(picture)
    nudge, inputs, network = by_name(perturb, sigma2, relative), load_inputs(data), load_model(model)
    with Console(stderr=True).status("measuring") as status:
        result = sensitivity(
            network,
            inputs,
            nudge,
            precision=precision,
            half_width=half_width,
            budget=budget,
            confidence=confidence,
            design=design,
            seed=seed,
            progress=lambda now: status.update(f"measuring: {now!r} after {now.forwards} forwards"),
        )
    if picture is not None:
        print(f"picture: {_draw_map(network, inputs, nudge, seed, picture)}", file=sys.stderr)
    facts = {"value": result.value, "low": result.low, "high": result.high, "confidence": result.confidence}
    facts |= {"n": result.n, "draws": result.draws, "forwards": result.forwards, "design": result.design}
    facts |= {"stopped": result.stopped, "notes": list(result.notes)}
    if as_json:
        _print_json({"model": model, "data": str(data), "perturb": perturb, "sigma2": sigma2, "seed": seed, **facts})
        return
    print(f"sensitivity {result!r} ({100 * confidence:g} %)")
    print(f"{result.n} inputs, {result.draws} draws, {result.forwards} forwards; stopped by {result.stopped}")
    for note in result.notes:
        print(f"note: {note}")


def _draw_map(network: Any, inputs: Any, nudge: Any, seed: int, place: Path) -> Path:
    import torch

    from teeter.measure import token_map
    from teeter.perturb.images import PatchNoise, PatchReplace
    from teeter.perturb.inputs import count, field, take
    from teeter.report import heat_map, position_profile, save

    some = take(inputs, torch.arange(min(64, count(inputs))))
    where = token_map(network, some, nudge, draws=16, seed=seed)
    if isinstance(nudge, PatchNoise | PatchReplace):
        return save(lambda: heat_map(where, field(some, nudge.field)), place)
    return save(lambda: position_profile(where), place)


@app.command()
def doctor(
    model: ModelArgument,
    data: DataArgument,
    perturb: Annotated[str | None, typer.Option("--perturb", help="As for measure.")] = None,
    sigma2: Sigma2Option = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Is what would be measured what was meant? Exit code 1 if something is wrong."""
    from teeter.integrations import load_inputs, load_model
    from teeter.measure import doctor as look
    from teeter.perturb import by_name

    findings = look(load_model(model), load_inputs(data), by_name(perturb, sigma2) if perturb else None)
    if as_json:
        _print_json({"findings": [{"wrong": finding.wrong, "what": finding.what} for finding in findings]})
    else:
        print("\n".join(str(finding) for finding in findings) or "nothing wrong")
    if any(finding.wrong for finding in findings):
        raise typer.Exit(1)


@study_app.command("list")
def study_list(as_json: JsonOption = False) -> None:
    """All studies, with the paper and the place they rerun."""
    from teeter.studies import PAPERS, STUDIES

    listed = [{"name": s.name, "paper": s.paper, "where": s.where, "title": s.title} for s in STUDIES.values()]
    if as_json:
        _print_json(listed)
        return
    from rich.table import Table

    table = Table("name", "paper", "where", "title")
    for entry in listed:
        table.add_row(entry["name"], PAPERS[entry["paper"]].short, entry["where"], entry["title"])
    Console().print(table)


@study_app.command("run")
def study_run(
    name: Annotated[str, typer.Argument(help="A name from `teeter study list`.")],
    tier: Annotated[str, typer.Option("--tier", help="smoke (seconds), small (minutes) or paper.")] = "small",
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Run a study, or what is left of it, and judge its claims. Safe to interrupt at any moment."""
    from teeter.report import claims_table
    from teeter.runs import Store
    from teeter.studies import find

    study = find(name)
    study.specs(tier)  # an unknown tier is an error before any work
    start = time.perf_counter()
    outcome = _execute(study, tier, Store(store))
    seconds = round(time.perf_counter() - start, 3)
    if as_json:
        claims = [judgement.record() for judgement in outcome.judgements]
        _print_json({"study": study.name, "tier": tier, "seconds": seconds, "claims": claims})
    else:
        Console().print(claims_table(outcome))


@study_app.command("show")
def study_show(
    name: Annotated[str, typer.Argument(help="A name from `teeter study list`.")],
    store: StoreOption = DEFAULT_STORE,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the study's figure to this file.")] = None,
) -> None:
    """What a study is about, where it departs from the paper, and what the store holds of it."""
    from teeter.errors import InputError
    from teeter.report import claims_table, drawable, save
    from teeter.runs import Store
    from teeter.studies import PAPERS, find

    study = find(name)
    if plot is not None:
        drawable(plot)
    out = Console()
    out.print(f"[bold]{study.name}[/bold]  {PAPERS[study.paper].short}, {study.where}")
    out.print(study.about.strip(), markup=False)
    tiers = ", ".join(f"{tier} ({len(specs)} runs)" for tier, specs in study.tiers.items())
    out.print(f"\ntiers: {tiers}")
    for departure in study.departures:
        out.print(f"- {departure}", markup=False)
    outcome = study.best(Store(store))
    if outcome is not None:
        out.print(claims_table(outcome))
    else:
        out.print(f"\nno tier is complete in {store}: teeter study run {study.name} --tier smoke", markup=False)
    if plot is not None:
        if outcome is None:
            raise InputError(f"nothing to draw: no tier of {study.name} is complete in {store}")
        print(f"picture: {save(lambda: study.figure(outcome.table), plot)}", file=sys.stderr)


@app.command()
def report(
    out: Annotated[Path, typer.Option("--out", help="Folder to write index.html into.")],
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Write the page: every study in the store, published beside measured, as one HTML file."""
    from teeter.errors import InputError
    from teeter.report import write_page
    from teeter.runs import Store

    if not store.is_dir():
        raise InputError(f"no store at {store}: name one with --store, or make one with `teeter study run NAME`")
    print(write_page(Store(store), out))


@app.command()
def cite(
    name: Annotated[str | None, typer.Argument(help="A study or a paper; all of them by default.")] = None,
) -> None:
    """BibTeX for what you used."""
    from teeter.studies import PAPERS, STUDIES

    keys = list(PAPERS)
    if name is not None:
        if name not in STUDIES and name not in PAPERS:
            raise UnknownName("study or paper", name, [*STUDIES, *PAPERS])
        keys = ["teeter", STUDIES[name].paper] if name in STUDIES else [name]
    print("\n\n".join(PAPERS[key].bibtex() for key in keys))


def _execute(study: Study, tier: str, store: Store) -> Outcome:
    store.prepare(study.name)  # a folder that cannot be written is an error before any work
    with _progress(f"{study.name} ({tier})", len(study.specs(tier))) as finished:
        return study.execute(tier, store, finished)


@contextmanager
def _progress(label: str, total: int) -> Iterator[Any]:
    """A bar on stderr that is told how many of `total` are done."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total)
        yield lambda count: bar.update(task, completed=count)
