"""`teeter study`, `demo`, `report` and `cite`: what reruns the papers and shows what came out."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from teeter.cli.app import JsonOption, app, print_json
from teeter.errors import UnknownName

if TYPE_CHECKING:
    from teeter.studies import Outcome

__all__ = ["cite", "demo", "report", "study_list", "study_pack", "study_run", "study_show"]

study_app = typer.Typer(help="The experiments of both papers: list them, run them, show what came out.")
app.add_typer(study_app, name="study")

StoreOption = Annotated[
    Path, typer.Option("--store", envvar="TEETER_STORE", help="Folder that keeps finished runs.", show_default=True)
]
DEFAULT_STORE = Path("teeter-runs")


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the report and its runs.")] = Path("demo"),
) -> None:
    """Run every study, the quick ones at their small tier, and write the report: minutes, on two cores."""
    from teeter.report import claims_table, write_page
    from teeter.runs import Store
    from teeter.studies import LACKING, STUDIES, execute_all

    store = Store(out / "store")
    outcomes: list[Outcome] = []
    for study in STUDIES.values():
        store.prepare(study.home.name)  # a folder that cannot be written is an error before any work
        try:
            with _progress(f"{study.name} ({study.demo})", len(study.specs(study.demo))) as finished:
                outcomes += execute_all([study], study.demo, store, finished)
        except LACKING as problem:  # the other studies need no such data
            print(f"{study.name} is left out: {' '.join(str(problem).split())}", file=sys.stderr)
    place = write_page(store, out)
    for outcome in outcomes:
        Console().print(claims_table(outcome))
    print(f"report: {place}")


@study_app.command("list")
def study_list(as_json: JsonOption = False) -> None:
    """All studies, with the paper and the place they rerun."""
    from teeter.studies import PAPERS, STUDIES

    listed = [{"name": s.name, "paper": s.paper, "where": s.where, "title": s.title} for s in STUDIES.values()]
    if as_json:
        print_json(listed)
        return
    from rich import box
    from rich.table import Column, Table

    console = Console()
    names = max(len(entry["name"]) for entry in listed)
    table = Table(Column("name", no_wrap=True, min_width=names), box=box.SIMPLE_HEAD)
    more = [name for name, wide in (("title", 50), ("where", 100), ("paper", 120)) if console.width >= wide]
    for name in more:  # the narrower the terminal, the fewer: a name is copied, and is never cut
        table.add_column(name)
    for entry in listed:
        entry["paper"] = PAPERS[entry["paper"]].short
        table.add_row(entry["name"], *(entry[name] for name in more))
    console.print(table, crop=False)


@study_app.command("run")
def study_run(
    names: Annotated[
        list[str],
        typer.Argument(help="Names from `teeter study list`; a paper's (hahn2024, vasudeva2025) is all of it."),
    ],
    tier: Annotated[str, typer.Option("--tier", help="smoke (seconds), small (minutes) or paper.")] = "small",
    store: StoreOption = DEFAULT_STORE,
    within: Annotated[
        float | None,
        typer.Option("--seconds", min=0, help="Begin nothing more once so many are over; the next call goes on."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes that share the work.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Run studies, or what is left of them, and judge their claims. Safe to interrupt at any moment."""
    from teeter.errors import InputError, RunsFailed
    from teeter.report import claims_table
    from teeter.runs import Store
    from teeter.studies import chosen, execute_all

    studies, kept, missing = chosen(names), Store(store), {}
    one = studies[0] if len(studies) == 1 else None
    wanted = {key for study in studies for key in study.keys(tier)}  # an unknown tier is an error before any work
    kept.prepare(studies[0].home.name)  # and so is a folder that cannot be written

    def left_out(name: str, problem: Exception) -> None:
        missing[name] = problem
        print(f"{name} is left out: {' '.join(str(problem).split())}", file=sys.stderr)

    start, failed = time.perf_counter(), None
    with _progress(f"{one.name if one else f'{len(studies)} studies'} ({tier})", len(wanted)) as finished:
        try:
            execute_all(studies, tier, kept, finished, within, workers, None if one else left_out)
        except RunsFailed as problem:  # what did not fail is shown all the same
            failed = problem
    seconds = round(time.perf_counter() - start, 3)
    outcomes = [study.outcome(tier, kept) for study in studies]
    if as_json:
        records = [_record(outcome, missing.get(outcome.study.name)) for outcome in outcomes]
        told = {"seconds": seconds}
        print_json({**records[0], **told} if one else {"tier": tier, **told, "studies": records})
    for outcome in outcomes:
        done, of = len(outcome.provenance), len(outcome.study.specs(tier))
        if as_json or outcome.study.name in missing:
            continue
        if done == of:
            Console().print(claims_table(outcome))
        else:
            name = "" if one else f"{outcome.study.name}: "
            Console().print(f"{name}{done} of {of} runs are done: the same command goes on")
    if failed is not None:
        raise failed
    if len(missing) == len(studies):
        raise InputError("none of these studies can be run here: what each lacks is said above")


def _record(outcome: Outcome, missing: Exception | None) -> dict[str, Any]:
    """A study's claims, as --json has them; those of half a tier have no verdict."""
    done, of = len(outcome.provenance), len(outcome.study.specs(outcome.tier))
    claims = [judgement.record() for judgement in outcome.judgements]
    if done < of:
        claims = [{**claim, "verdict": f"incomplete: {done} of {of} runs"} for claim in claims]
    why = {} if missing is None else {"left_out": " ".join(str(missing).split())}
    return {"study": outcome.study.name, "tier": outcome.tier, "runs": done, "of": of, **why, "claims": claims}


@study_app.command("pack")
def study_pack(
    name: Annotated[str, typer.Argument(help="A name from `teeter study list`.")],
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Put the finished runs of a study into one compressed file, as results are kept with a project."""
    from teeter.errors import InputError
    from teeter.runs import Store
    from teeter.studies import find

    study = find(name)
    if not any(store.joinpath(study.home.name).glob("[!.]*.json*")):
        raise InputError(f"no run of {study.name} in {store}: teeter study run {study.name} --tier smoke")
    print(Store(store).pack(study.home.name))


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
