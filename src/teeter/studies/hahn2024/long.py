"""Does sharpness go on to grow with the length of the input, up to hundreds of bits?

Appendix E.2 of Hahn & Rofin: small encoders learn MAJORITY, FIRST and MEAN at 20 lengths from 4 to 512 (Figures 7
and 8); PARITY was out of reach there. Sharpness increases for MAJORITY, whose average sensitivity grows like the root
of n, and shows little dependence on n for FIRST and MEAN, whose average sensitivity does not grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from teeter.studies.hahn2024 import length_panels as panels
from teeter.studies.hahn2024 import lengths
from teeter.studies.hahn2024.learning import VARIANTS, Learner, together
from teeter.studies.study import Claim, Study

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["LENGTHS", "STUDY"]

NAMES = ("majority", "first", "mean")
LENGTHS = tuple(round(4 + 508 * i / 19) for i in range(20))  # evenly spaced, as in the released code
OF = {"text": LENGTHS, "released": LENGTHS[:6] + LENGTHS[7::4]}  # of the long ones, which take most time, four

SMOKE = [
    Learner(name, n, seed, variant, dim=4, batch=16, steps=20, rate=1e-2)
    for variant in VARIANTS
    for n in (3, 6)
    for name in NAMES
    for seed in range(2)
]
SMALL = [
    Learner(name, n, seed, dim=4, batch=32, steps=600, rate=1e-2)
    for n in (4, 10, 16)
    for name in NAMES
    for seed in range(3)
]
PAPER = [
    Learner(name, n, seed, variant, dim=4, batch=128)
    for variant in VARIANTS
    for n in OF[variant]
    for name in NAMES
    for seed in range(5)
]


def _claims(variant: str) -> list[Claim]:
    """What is said of Figure 7, for one variant."""
    found = [
        Claim(
            f"MAJORITY, {variant}: does sharpness increase with n? 1 yes, 0 no (Figure 7)",
            1,
            lengths.rises("majority", variant),
            resolution=0.1,
        )
    ]
    for name in ("first", "mean"):
        words = "Pearson's r of sharpness and n (Figure 7: little dependence, so within 0.3)"
        found.append(
            Claim(f"{name.upper()}, {variant}: {words}", 0, lengths.correlation(name, variant), 0.3, strict=True)
        )
    return found


CLAIMS = [claim for variant in VARIANTS for claim in _claims(variant)]

DEPARTURES = [
    "The text has no list of lengths; the released code takes 20, evenly spaced from 4 to 512 and rounded, and so do "
    "we. It also has batches of 128, where the text gives hidden dimension 4 and nothing else that differs from "
    "Table 1; we take its 128 for both variants, and five runs each. The model of the released code has the six "
    "lengths up to 138, and 191, 298, 405 and 512.",
    "MEAN varies little on long inputs: the constant 1/2 has an error of 1/(4n), which is below the 1e-3 that counts "
    "as converged from n = 250 on. From there on, MEAN's lengths discard nothing, not even a network that ignores its "
    "input, of which there are three: one of the text's model, at 432 bits, and two of the released code's, at 405 and "
    "512. The column `unexplained` is the error over that of the best constant.",
    "'Little discernible dependency' is judged by the correlation of sharpness and length, which is to lie within "
    "0.3 of 0: length then explains less than a tenth of the variance. 'Does increase' is judged by the interval of "
    "the slope, which is to lie above 0.",
    "The model of the released code joins a token half and a position half, two numbers each; that of the text adds "
    "vectors of four. Claims about the released variant are judged by the rise of the error.",
    "FIRST is learned in two ways, as a look into 20 networks shows, five of 111 bits and 15 of 164 "
    "(benchmarks/profiles/first.py). 14 are flat, with a sharpness of 0.006 to 0.077. In the other six, of 0.64 to "
    "1.58, a LayerNorm of the first layer divides at the first position by as little as 0.022 to 0.092, where the "
    "median over positions is above 0.75, and the flat ones by no less than 0.149. In five of the six, noise on the "
    "token vectors alone costs 0.70 to 1.34; in the sixth no part alone costs more than 0.024.",
    "Of the 86 networks of the text's model that learned FIRST, 66 are flat, at any length: their median is 0.02, "
    "their highest 0.22, and the correlation with length 0.02. The 20 sharp ones, of 0.44 to 1.70, are 2 of 30 up to "
    "138 bits, 18 of 49 from there to 432 and none of 7 beyond, where 8 of 15 runs did not converge (of all 14 that "
    "did not, 13 learned nothing; of the released code's model, 9 of 10). Of the released code's 40, three are sharp, "
    "at 57 to 111 bits. Whether that is the length is open: the sharp ones are 1, 5, 9, 5 and 0 of seeds 0 to 4, and a "
    "seed begins with the same two token vectors at all lengths, those of seeds 0 and 4 about twice as far apart as "
    "the others. So ten more seeds were trained at 164 bits, to see whether it is the nearer ones that turn sharp: "
    "three do, and are the three whose token vectors begin nearest, 1.4 to 1.8 apart where the others have 2.0 to 3.7 "
    "(by chance, one case in 120). With the first five seeds the two kinds overlap: at 164 bits those of 2.1 and 2.4 "
    "are sharp, and that of 2.0 is flat. Over all lengths 19 of 52 networks of seeds 1 to 3 are sharp, and 1 of 34 of "
    "seeds 0 and 4. So tokens that begin alike make it likelier, and do not settle it.",
    "MEAN's correlation with length, -0.26, is due to the shortest inputs: sharpness has a median of 0.029 at 4 bits "
    "and of 0.011 beyond, and without the five runs at 4 bits the correlation is -0.08 (-0.27 to 0.13). The released "
    "code's model has -0.22, and -0.12 (-0.40 to 0.18) without; neither is told from 0.",
    "MAJORITY is seldom learned to 1e-3 where it is long: by the text's model in 34 of 45 runs up to 218 bits and in 7 "
    "of 55 beyond; of those discarded, the median leaves 2.3 % of the variance unexplained, where 0.4 % would count. "
    "That it grows sharper is seen up to 218 bits (0.0031 a bit, 0.0022 to 0.0040). The seven kept beyond fall "
    "(-0.0030 a bit, -0.0051 to -0.0010), but are of four lengths, and with the one of 218 bits the interval is "
    "-0.0040 to 0.0005. Of the released code's model the rise is that from 4 bits to the rest: without 4 bits it is "
    "0.0008 a bit (-0.0004 to 0.0019), and the text's 0.0016 (0.0009 to 0.0022). How many the paper has discarded it "
    "does not say.",
    "As in `scaling`: feed-forward layers as wide as the model, ten draws (a hundred in `sharpness_100`), convergence "
    "judged on 65,536 strings, and on a GPU tf32 in training.",
    "Absolute values are not to be compared with those of the shorter inputs, whose models are larger (as the paper "
    "notes).",
]


def figure(table: pd.DataFrame) -> Figure:
    """Figure 7 (a panel a function), Figure 8 (all on one scale), and what came along."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(6.4, 7.2), layout="constrained")
    grid = drawing.subplots(3, 2)
    shared, shares, blowup = grid[1, 1], grid[2, 0], grid[2, 1]
    for name, axes in zip(NAMES, grid.flat, strict=False):
        panels.runs_and_spread(axes, table, name)
        panels.titled(axes, table, name)
        panels.curves(shared, table, name)
        panels.converged_shares(shares, table, name)
        panels.curves(blowup, table, name, "blowup")
    for axes in grid.flat:
        axes.set_xlim(0, table.n.max() * 1.03)
        axes.xaxis.get_major_locator().set_params(integer=True)
    for axes in grid[:2, 0]:
        axes.set_ylabel("sharpness")
    for axes in grid[2]:
        axes.set_xlabel("input length $n$")
    shared.set_title("All three, axes aligned", loc="left", fontsize=8.5)
    shared.set_ylim(bottom=0)
    shares.set(ylim=(-4, 104), ylabel="runs converged (%)")
    blowup.set_ylabel("log of the blow-up")
    panels.legend(drawing, table, NAMES)
    return drawing


STUDY = Study(
    name="hahn2024/long",
    paper="hahn2024",
    where="Figures 7 and 8",
    title="Sharpness against length, up to 512 bits",
    about=__doc__ or "",
    revision=1,
    tiers={"smoke": SMOKE, "small": SMALL, "paper": PAPER},
    run=lengths.run,
    figure=figure,
    claims=CLAIMS,
    departures=DEPARTURES,
    together=together(lengths.final_row, most=15),  # of one length: its attention is a table, whatever the batch
)
