"""Findings that the findings and the departures of studies of V name are those of the results they stand on."""

from teeter.runs import Store
from teeter.studies import find
from teeter.studies.vasudeva2025 import fashion, grokking, random_noise, synthetic, variance
from teeter.studies.vasudeva2025.adding import VARIANTS
from teeter.studies.vasudeva2025.language_rows import LSTM, RELEASED, ROBERTA, at_end
from teeter.studies.vasudeva2025.synthetic_accounts import followed, safer
from teeter.studies.vasudeva2025.vision import matched, meanwhile
from tests.test_records import FINDINGS, ROOT, record, spread


def test_how_many_settings_come_out():
    """Accuracy on altered sentences in V's six settings, as the findings have it; and where the two accounts part."""
    outcome = find("vasudeva2025/synthetic").outcome("paper", Store(ROOT / "results"))
    altered = {each.claim.claim: each for each in outcome.judgements if "accuracy on altered test" in each.claim.claim}
    six = ["(3,3,1,6)", "(3,5,1,16)", "(3,7,1,28)", "(1,7,7,10)", "(1,17,7,20)", "(1,32,7,36)"]
    verdicts = [each.verdict for name in six for claim, each in altered.items() if claim.startswith(f"{name}:")]
    assert verdicts == ["reproduced"] * 5 + ["not reproduced"]
    (ours,) = (each for claim, each in altered.items() if claim.startswith("(1,17,3,20):"))
    assert ours.estimate.value == 0  # as the mean of label times token says
    assert "in five of six settings; in the largest it does not" in FINDINGS


def test_which_choice_gives_which_column():
    """What the departures of `synthetic` say of Figure 3, and of the account by the mean direction."""
    study = find("vasudeva2025/synthetic")
    table, said = study.outcome("paper", Store(ROOT / "results")).table, " ".join(study.departures)
    left, right = synthetic.FIGURE_3
    measured = [("mean", left, "sparse"), ("adam", right, "frequent"), ("adam", left, "sparse")]
    one, two, three = (synthetic.ends(table, s, v)[f"alignment_{kind}"].mean() for v, s, kind in measured)
    ahead = [synthetic.lead(s, v, False)(table).value for v, s, _ in measured[:2]]
    assert f"the left one (alignment {one:.3f}, attention ahead by {ahead[0]:.2f})" in said
    assert f"the right one ({two:.2f} and {ahead[1]:.2f}), and in the left has an alignment of {three:.2f}" in said
    assert (synthetic.ends(table, right, "mean")["altered"] == 0).all()
    dense = (1, 32, 7, 33)
    assert followed(dense) == 1 and safer(dense) == "frequent"
    assert (synthetic.ends(table, dense)["altered"] == 0).all()


def test_what_the_phases_of_grokking_are():
    """As the findings and the departures of `grokking` have it: the released code's, by its embedding that shrinks."""
    study = find("vasudeva2025/grokking")
    outcome, said = study.outcome("paper", Store(ROOT / "results")), " ".join(study.departures)
    found = {each.claim.claim: each for each in outcome.judgements}
    borders = [each for words, each in found.items() if words.startswith("p = 113")]
    verdicts = [each.verdict for each in borders]
    assert verdicts == ["undecided", "undecided", "reproduced", *["reproduced"] * 3]
    ends = [
        f"{value:,.0f}"
        for value in (round(each.estimate.value, -1 if k == 2 else 0) for k, each in enumerate(borders[3:]))
    ]
    assert "its borders come out at {}, {} and {}.".format(*ends) in said
    assert (
        "falls up to epoch {}, rises while the norm falls, up to {}, and falls again until it groks, at {}".format(
            *ends
        )
        in FINDINGS
    )
    courses, relative = {}, {}
    for (variant, seed), run in outcome.table.groupby(["variant", "seed"]):
        courses[variant, seed] = grokking.course_of(run)
        relative[variant, seed] = grokking.course_of(run, "sensitivity_relative").rise
    rises = {name: [each.rise for (variant, _), each in courses.items() if variant == name] for name in VARIANTS}
    assert f"{sum(rises['released']) / 6:.1f} times in the mean" in said and min(rises["released"]) >= 1.5
    assert all(value == 1 for (variant, _), value in relative.items() if variant == "released")
    assert sum(value >= 1.5 for value in rises["text"]) == 1 and "one run of six has such a rise" in said

    sizes = outcome.table.set_index(["variant", "seed", "epoch"])["embedding"]
    before, later = (
        sum(sizes["released", seed, getattr(courses["released", seed], border)] for seed in range(6)) / 6
        for border in ("memorised", "formed")
    )
    assert f"of the embedding falls from {before:.2f} to {later:.2f}" in said
    runs = [run.sort_values("epoch") for _, run in outcome.table.loc[outcome.table.variant == "text"].groupby("seed")]
    known = sum(run.embedding.iloc[grokking.knows_by_heart(run)] for run in runs) / 6
    assert f"({known:.2f} once the training pairs are known)" in said


def test_what_becomes_of_runs_that_have_grokked():
    """The training loss falls to the resolution of float32 and jumps, and in float64 it does not."""
    study = find("vasudeva2025/grokking")
    table, said = study.outcome("paper", Store(ROOT / "results")).table, " ".join(study.departures)
    least, jumps = [], []
    for _, run in table.groupby(["variant", "seed"]):
        run = run.sort_values("epoch").set_index("epoch")
        loss = run.train_loss.loc[grokking.course_of(run.reset_index()).grokked :]
        if loss.idxmin() < loss.index[-1]:
            least.append(loss.min())
            jumps.append(loss.loc[loss.idxmin() :].max() / loss.min())
    assert len(least) == 11 and "in eleven of twelve runs" in said
    assert f"falls to {min(least):.2g} to {max(least):.2g}, next to" in said and min(jumps) > 1000
    rises = []
    for variant in VARIANTS:
        made = record(f"grokked-{variant}")
        [run] = made["runs"]
        assert made["loss"] == "float64" and run["at"] == 25_000  # it falls up to the last epoch
        own = table.loc[(table.variant == variant) & (table.seed == run["seed"])]
        rises += [run["rise"], grokking.course_of(own).bump]
        assert "+" not in made["provenance"]["commit"]
    words = (
        "rises {:.1f} times with skip connections and {:.1f} times without, where in float32 it rises {:.0f} and {:.0f}"
    )
    assert words.format(*rises[::2], *rises[1::2]) in said


def untrained(table):
    """Mean sensitivity before any training, by model: what a script has that never steps its optimizer."""
    return table.loc[(table.about == "epoch") & (table.epoch == 0)].groupby("model")["sensitivity"].mean()


def test_which_is_more_sensitive_on_digits():
    """As the findings and the departures of `mnist` have it: it hangs on the variance of the noise."""
    study = find("vasudeva2025/mnist")
    outcome = study.outcome("paper", Store(ROOT / "results"))
    equal = outcome.judgements[0]
    assert equal.verdict == "not reproduced"
    assert f"more sensitive by a factor of {10**-equal.estimate.value:.1f} to noise of variance 1" in FINDINGS
    noise = outcome.table.loc[outcome.table.about == "noise"]
    means = noise.pivot_table(index=["noise", "sigma2"], columns="model", values="sensitivity")
    ratios = (means["vit-small-mnist"] / means["mlp-mnist"])["patch"]
    more, less = ratios[[0.25, 1.0, 4.0]], 1 / ratios[[16.0, 64.0]]
    said = " ".join(study.departures)
    assert "{:.1f} at a variance of 0.25, of {:.1f} at 1 and of {:.1f} at 4".format(*more) in said
    assert "less by one of {:.1f} at 16 and of {:.1f} at 64".format(*less) in said
    verdicts = {each.claim.claim.split(" (")[0]: each.verdict for each in outcome.judgements[1:]}
    no, yes, unknown = "not reproduced", "reproduced", "undecided"
    assert list(verdicts.values()) == [no, no, unknown, yes, no, unknown, no]
    scattered = means["vit-small-mnist"] / means["mlp-mnist"]
    times = f"changes the ViT's answer {scattered['scattered', 1.0]:.1f} times as often as the MLP's"
    assert times in said and "untrained the ViT changes no answer" in said
    assert untrained(outcome.table)["vit-small-mnist"] == 0


def test_which_is_more_sensitive_on_clothes():
    """As the findings and the departures of `fashion` have it."""
    study = find("vasudeva2025/fashion")
    outcome, said = study.outcome("paper", Store(ROOT / "results")), " ".join(study.departures)
    yes, no = "reproduced", "not reproduced"
    assert [each.verdict for each in outcome.judgements] == [yes, yes, *[no] * 7, yes, yes]
    leaky, sigmoid, cnn = (each.estimate for each in outcome.judgements[-3:])
    times = (
        "has {:.2f} times the ViT's sensitivity ({:.2f} to {:.2f}), that with sigmoid {:.2f} times and the CNN {:.2f}"
    )
    found = (leaky.value, leaky.low, leaky.high, sigmoid.value, cnn.value)
    assert times.format(*(10**each for each in found)) in said and leaky.low < 0
    words = "that with sigmoid has {:.1f} times its sensitivity and the CNN {:.1f} times"
    assert words.format(10**sigmoid.value, 10**cnn.value) in FINDINGS and sigmoid.low > 0
    level = matched(outcome.table).train_accuracy
    assert "At equal training accuracy, {:.2f} to {:.2f}, the".format(*spread(level)) in said
    ends = [
        value / fashion.PUBLISHED[fashion.VIT] for model, value in fashion.PUBLISHED.items() if model != fashion.VIT
    ]
    assert "have {:.1f} to {:.1f} times".format(*spread(ends)) in said

    table = outcome.table.rename(columns={"train_accuracy": "accuracy"})
    epochs = table.loc[table.about == "epoch"].groupby(["model", "epoch"])[["sensitivity", "accuracy"]].mean()
    vit, cnn = epochs.loc[fashion.VIT].loc[1:], epochs.loc["cnn"].loc[1:]
    assert f"mean is {vit.sensitivity.min():.3f} or more at all {len(vit)} epochs measured from the first on" in said
    assert f"from epoch 22 to 40 the ViT's falls from {vit.sensitivity[22]:.3f} to {vit.sensitivity[40]:.3f}" in said
    assert f"within a half ({cnn.sensitivity[10]:.3f}, at an accuracy of {cnn.accuracy[10]:.2f})" in said
    for model in ("cnn", "mlp-leaky-relu", "mlp-sigmoid"):
        off = (epochs.loc[model].sensitivity[1:10] / fashion.PUBLISHED[model] - 1).abs()
        assert off.max() < 0.5
    assert cnn.sensitivity[14] > 1.5 * fashion.PUBLISHED["cnn"]

    noise = table.loc[table.about == "noise"]
    means = noise.pivot_table(index=["noise", "sigma2"], columns="model", values="sensitivity")
    patch = means.loc["patch"]
    vit, mlps = patch[fashion.VIT], ["mlp-leaky-relu", "mlp-sigmoid"]
    assert f"it is at {vit[1.25]:.3f} with a quarter of V's" in said
    assert f"take it to {vit[20]:.3f} to {vit[40]:.3f} (noise of variance 20 and 40 on a patch)" in said
    assert f"its scattering to {means.loc['scattered', 25.0][fashion.VIT]:.3f};" in said
    first = untrained(table)
    rest = f"the MLPs have {first[mlps[0]]:.3f} and {first[mlps[1]]:.3f} and the CNN {first.cnn:.3f}"
    assert f"untrained the ViT changes no answer, where {rest}" in said and first[fashion.VIT] == 0
    assert (
        f"({patch.cnn[2.5]:.3f}), and the MLPs' still ({' and '.join(f'{patch[each][2.5]:.3f}' for each in mlps)})"
        in said
    )
    assert all(abs(patch[each][2.5] / fashion.PUBLISHED[each] - 1) < 0.5 for each in ("cnn", *mlps))
    assert vit.min() > 1.5 * fashion.PUBLISHED[fashion.VIT]
    assert f"rises to no more than {vit.max():.3f};" in said
    mlp, cnn = ([(patch[kind] / vit)[sigma2] for sigma2 in (1.25, 5, 40)] for kind in ("mlp-leaky-relu", "cnn"))
    times = "has {:.1f} times its sensitivity at a variance of 1.25, {:.1f} times at 5 and {:.1f} times at 40"
    assert times.format(*mlp) in said and "the CNN has {:.1f}, {:.1f} and {:.1f} times".format(*cnn) in said
    low, high = spread(means.loc["scattered"].iloc[0].drop("cnn"))
    assert high < 1.05 * low
    assert vit[5] == patch.loc[5].min() and f"but with {vit[5]:.3f} and not 0.0098" in FINDINGS
    assert (
        f"is {mlp[0]:.1f} times as sensitive at a quarter of V's variance, and {mlp[2]:.1f} times at eight" in FINDINGS
    )


def test_what_sets_vits_apart_on_cifar10_in_small():
    """As the findings have it, of narrow models on some of the images."""
    store = Store(ROOT / "results")
    by_words = {each.claim.claim: each for each in find("vasudeva2025/cifar10").outcome("small", store).judgements}

    def times(other, vit):
        (found,) = (e for words, e in by_words.items() if words.startswith(f"{other} significantly above {vit} "))
        return found.verdict, found.estimate

    told = [("DenseNet-121", "ViT-simple"), ("ConvMixer", "ViT-simple"), ("ResNet-18", "ViT-simple")]
    told += [("DenseNet-121", "ViT-small"), ("ConvMixer", "ViT-small")]
    factors = [10 ** times(*pair)[1].value for pair in told]
    words = (
        "less sensitive than DenseNet-121 by a factor of {:.1f}, than ConvMixer by {:.1f} and than ResNet-18 by {:.1f}"
    )
    words += ", ViT-small less than DenseNet-121 by {:.1f} and than ConvMixer by {:.1f}; from ResNet-18 it is not told"
    assert words.format(*factors) in FINDINGS
    assert all(times(*pair)[1].low > 0 for pair in told)
    verdict, apart = times("ResNet-18", "ViT-small")
    assert verdict == "not reproduced" and apart.low < 0 < apart.high

    table = find("vasudeva2025/variance").outcome("small", store).table
    level = matched(table)["level"].iloc[0]
    assert f"right on {level:.2f} of the training images" in FINDINGS
    means = {model: variance.by_variance(table, model).mean() for model in (*variance.OTHERS, *variance.VITS)}
    assert set(means["resnet18"].index) == {0.25, 0.5, 1, 2, 4, 8}
    grows = {model: each[8] / each[0.25] for model, each in means.items()}
    vits = sorted(grows[model] for model in variance.VITS)
    others = spread([grows[model] for model in variance.OTHERS])
    assert (
        "a factor of {:.1f} and {:.1f} with the ViTs, and of {:.1f} to {:.1f} with the".format(*vits, *others)
        in FINDINGS
    )

    same = meanwhile(find("vasudeva2025/random-noise").outcome("small", store).table)
    cnn, vit = (random_noise.under(same, model, "whole as released") for model in random_noise.MODELS)
    assert (vit > cnn).all() and f"ViT-small is {vit.mean() / cnn.mean():.1f} times as sensitive as" in FINDINGS
    for name in ("dropout", "optimizer", "depth-heads"):
        assert find(f"vasudeva2025/{name}").outcome("small", store).judgements[-1].verdict == "reproduced"


def test_where_noise_on_texts_goes_in_small():
    """As the findings have it, of small readers of MRPC and QQP."""
    outcome = find("vasudeva2025/language").outcome("small", Store(ROOT / "results"))
    found = {each.claim.claim: each for each in outcome.judgements}
    orders = [each for words, each in found.items() if words.startswith("LSTM above RoBERTa at matched")]
    assert len(orders) == 6 and [each.estimate.value for each in orders] == [1, 1, 0.5, 1, 1, 1]  # 0.5: unseen texts
    assert orders[-1].claim.claim.endswith("at every depth") and orders[-1].verdict == "reproduced"
    qqp = outcome.table.loc[outcome.table["data"] == "qqp"]
    parts = [at_end(qqp, model, what=what).mean() for model in (LSTM, ROBERTA) for what in ("late", "early")]
    words = "on QQP {:.3f} in the last quarter of a text and {:.3f} in the first, where RoBERTa has {:.3f} and {:.3f}."
    assert words.format(*parts) in FINDINGS
    after = [at_end(qqp, model).mean() for model in (LSTM, ROBERTA)]
    assert "it is {:.3f} against {:.3f}, a factor of {:.1f};".format(*after, after[0] / after[1]) in FINDINGS
    code = [at_end(qqp, model, what="pooled", **RELEASED[model]).mean() for model in (LSTM, ROBERTA)]
    assert "{:.3f} against {:.4f}, one of {:.0f}. There".format(*code, code[0] / code[1]) in FINDINGS
    (balance,) = (each.estimate for words, each in found.items() if words.startswith("QQP, RoBERTa: noise before"))
    share = at_end(qqp, ROBERTA, place="before").mean() / after[1]
    assert f"changes {share:.2f} as many answers" in FINDINGS and balance.high < 0.5
