"""What a study declares, and how its claims are judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from teeter.errors import InputError, UnknownName
from teeter.measure import Estimate
from teeter.runs import Store, Together, digest, execute, tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["TIERS", "Claim", "Judgement", "Outcome", "Study", "Verdict"]

TIERS = ("smoke", "small", "paper")
Verdict = Literal["reproduced", "not reproduced", "undecided", "not run at this tier"]


@dataclass(frozen=True)
class Claim:
    """A number the paper states, how we measure it, and the rule that decides.

    Reproduced: the interval meets published ± tolerance, and is narrow enough to have told otherwise (half-width at
    most `resolution`, by default a tenth of the published value). Undecided: it meets it but is wider than that.

    A claim that something is absent is `strict`: it is reproduced only where all of the interval is within the
    tolerance, since one that reaches farther may be of something that is there. So is one with a range of numbers that
    it `allows`, which stands in for the tolerance where the paper has words and no number (`published` is then None),
    or where more than what is published is as good.
    """

    claim: str
    published: float | None
    measure: Callable[[pd.DataFrame], Estimate | None]
    tolerance: float = 0.0  # half a unit of the last printed digit, or what the paper's wording allows
    resolution: float | None = None
    strict: bool = False
    allows: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.published is None and self.allows is None:
            raise InputError(f"a claim compares with a published number or with a range that it allows: {self.claim}")

    def judge(self, table: pd.DataFrame) -> Judgement:
        estimate = None if table.empty else self.measure(table)
        return Judgement(self, estimate, self._verdict(estimate))

    def _verdict(self, estimate: Estimate | None) -> Verdict:
        if estimate is None:
            return "not run at this tier"
        published = self.published or 0.0
        low, high = self.allows or (published - self.tolerance, published + self.tolerance)
        if estimate.low > high or estimate.high < low:
            return "not reproduced"
        if self.strict or self.allows:
            return "reproduced" if low <= estimate.low and estimate.high <= high else "undecided"
        resolution = abs(published) / 10 if self.resolution is None else self.resolution
        return "reproduced" if estimate.half_width <= resolution else "undecided"


@dataclass(frozen=True)
class Judgement:
    """A claim beside what was measured."""

    claim: Claim
    estimate: Estimate | None
    verdict: Verdict

    def record(self) -> dict[str, str | float | None]:
        """As the command line prints it; nothing is measured where no run says anything of it."""
        e = self.estimate if self.estimate and self.estimate.n else None
        return {
            "claim": self.claim.claim,
            "published": self.claim.published,
            "measured": e.value if e else None,
            "low": e.low if e else None,
            "high": e.high if e else None,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Outcome:
    """What the store holds of a study at one tier."""

    study: Study
    tier: str
    table: pd.DataFrame
    judgements: list[Judgement]
    provenance: list[dict[str, Any]]


@dataclass(frozen=True)
class Study:
    """An experiment of a paper: what it runs at each tier, what it draws, what the paper says came out."""

    name: str
    paper: str
    where: str
    title: str
    about: str
    revision: int  # raised whenever the same spec would give other numbers; old runs then no longer count
    tiers: dict[str, Sequence[Any]]
    run: Callable[[Any], list[dict[str, Any]]]
    figure: Callable[[pd.DataFrame], Figure]
    claims: Sequence[Claim]
    departures: Sequence[str]
    # The name of a table of the paper's, and that table with ours beside it, in words.
    beside: tuple[str, Callable[[pd.DataFrame], pd.DataFrame]] | None = None
    together: Together | None = None  # how many specs are run at once; else one by one
    shares: Study | None = None  # the study whose runs these are, where it looks at them from another side
    demo: str = "small"  # the tier that `teeter demo` runs
    took: str = ""  # what the paper says its own runs took

    @property
    def home(self) -> Study:
        """Under whose name its runs are kept."""
        return self.shares or self

    def specs(self, tier: str) -> Sequence[Any]:
        if tier not in self.tiers:
            raise UnknownName("tier", tier, self.tiers)
        return self.tiers[tier]

    def keys(self, tier: str) -> list[str]:
        return [digest(self.home.name, self.home.revision, spec) for spec in self.specs(tier)]

    def execute(self, tier: str, store: Store) -> Outcome:
        """Run what the tier still lacks, then judge it."""
        home = self.home
        execute(store, home.name, home.revision, home.run, self.specs(tier), together=home.together)
        return self.outcome(tier, store)

    def outcome(self, tier: str, store: Store) -> Outcome:
        """What is there of the tier, finished or not; claims it cannot speak to stay open."""
        keys = [key for key in self.keys(tier) if store.has(self.home.name, key)]
        runs = list(store.runs(self.home.name, keys))
        table = tidy(runs)
        provenance = [run.provenance for run in runs]
        complete = len(keys) == len(self.specs(tier))
        judged = table if complete else table.iloc[0:0]  # half a grid decides nothing
        return Outcome(self, tier, table, [claim.judge(judged) for claim in self.claims], provenance)

    def best(self, store: Store) -> Outcome | None:
        """The outcome at the highest tier that is complete in the store, or None."""
        for tier in reversed(TIERS):
            if all(store.has(self.home.name, key) for key in self.keys(tier)):
                return self.outcome(tier, store)
        return None
