"""Findings that the findings and the departures of studies of V name are those of the results they stand on."""

from dataclasses import replace

from teeter.runs import Store
from teeter.studies import find
from teeter.studies.vasudeva2025 import fashion, grokking, language, robustness, synthetic, variance
from teeter.studies.vasudeva2025.adding import VARIANTS
from teeter.studies.vasudeva2025.language_rows import LSTM, RELEASED, ROBERTA, at_end, pick
from teeter.studies.vasudeva2025.matching import matches
from teeter.studies.vasudeva2025.synthetic_accounts import followed, safer
from teeter.studies.vasudeva2025.vision import ends, learners, matched, meanwhile, of
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
    reduced = [each.estimate.value for words, each in found.items() if words.startswith("noise reduction: share whose")]
    assert [round(6 * value) for value in reduced] == [6, 1]  # with skip connections, and as released
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
    assert words.format(*rises[::2], *rises[1::2]) in said and words.format(*rises[::2], *rises[1::2]) in FINDINGS


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
    assert "it is less so by one of {:.1f} at variance 16 and of {:.1f} at 64".format(*less) in FINDINGS
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
    seen = find("vasudeva2025/cifar10").specs("small")
    images, seeds = {spec.images for spec in seen}, {spec.seed for spec in seen}
    assert f"of its five kinds, {images.pop():,} images, three seeds" in FINDINGS and len(seeds) == 3 and not images
    by_words = {each.claim.claim: each for each in find("vasudeva2025/cifar10").outcome("small", store).judgements}

    def times(other, vit):
        (found,) = (e for words, e in by_words.items() if words.startswith(f"{other} significantly above {vit} "))
        return found.estimate

    told = [("DenseNet-121", "ViT-simple"), ("ConvMixer", "ViT-simple"), ("ResNet-18", "ViT-simple")]
    told += [("DenseNet-121", "ViT-small"), ("ConvMixer", "ViT-small")]
    factors = [10 ** times(*pair).value for pair in told]
    words = (
        "than DenseNet-121 by a factor of {:.1f}, than ConvMixer by {:.1f} and than ResNet-18 by {:.1f}; ViT-small is "
    )
    words += "so than DenseNet-121 by {:.1f} and than ConvMixer by {:.1f}, and not told apart from ResNet-18"
    assert words.format(*factors) in FINDINGS
    assert all(times(*pair).low > 0 for pair in told)
    assert times("ResNet-18", "ViT-small").low < 0 < times("ResNet-18", "ViT-small").high

    outcome = find("vasudeva2025/variance").outcome("small", store)
    same = meanwhile(outcome.table)
    assert f"right on {same['level'].iloc[0]:.2f} of the training images" in FINDINGS
    assert [each.verdict for each in outcome.judgements[::2]] == ["not reproduced"] * 2  # at any variance
    models = (*variance.OTHERS, *variance.VITS)
    means = {model: variance.by_variance(outcome.table, model).mean() for model in models}
    assert set(means["resnet18"].index) == {0.25, 0.5, 1, 2, 4, 8}
    words = "at a quarter of V's, ViT-small has {:.3f} and ResNet-18 {:.3f}."
    assert words.format(means["vit-small"][0.25], means["resnet18"][0.25]) in FINDINGS
    grows = {model: each[8] / each[0.25] for model, each in means.items()}
    others = spread([grows[model] for model in variance.OTHERS])
    words = "by factors of {:.1f} (ViT-small) and {:.1f} (ViT-simple), that of the others by {:.1f} to {:.1f}."
    assert words.format(grows["vit-small"], grows["vit-simple"], *others) in FINDINGS
    weak = of(same, noise="whole", sigma2=0.025**2).groupby("model")["sensitivity"].mean().sort_values(ascending=False)
    assert list(weak.index) == ["vit-simple", "vit-small", "densenet121", "resnet18", "convmixer"]
    words = "under a variance of 0.000625 it changes {:.3f} of its answers, ViT-small {:.3f}, DenseNet-121 {:.3f}, "
    assert (words + "ResNet-18 {:.3f} and ConvMixer {:.3f}.").format(*weak) in FINDINGS
    for name in ("dropout", "optimizer", "depth-heads"):
        assert find(f"vasudeva2025/{name}").outcome("small", store).judgements[-1].verdict == "reproduced"


def test_what_robustness_leaves_open_in_small():
    store = Store(ROOT / "results")
    outcome = find("vasudeva2025/robustness").outcome("small", store)
    open_ = sum(each.verdict == "undecided" for each in outcome.judgements)
    assert f"of {len(outcome.judgements)} claims {open_} are undecided" in FINDINGS
    found = {each.claim.claim.partition(" (")[0]: each.estimate for each in outcome.judgements}

    def said(words, value):
        return words.format(value.value, value.low, value.high) in FINDINGS

    (steadier,) = (each for words, each in found.items() if words.startswith("ViT-small without penalty over with"))
    factor = replace(steadier, **{end: 10 ** getattr(steadier, end) for end in ("value", "low", "high")})
    assert said("(a factor of {:.2f} [{:.2f}, {:.2f}])", factor)
    flatter = find("vasudeva2025/flatness").outcome("small", store).judgements[-2].estimate
    assert said("ShOp is {:.2f} [{:.2f}, {:.2f}] times", flatter)
    rank = found["severity 1: rank correlation of sensitivity and accuracy, over kinds of models"]
    assert said("(rank correlation {:.2f} [{:.2f}, {:.2f}])", rank)
    assert robustness.ranked(robustness.parts(learners(outcome.table), None)["clean"]).value > 0
    known = of(ends(outcome.table), model="vit-small").groupby("training")["train_accuracy"].agg(["min", "max"])
    words = "right on {:.2f} to {:.2f} of the training images at the end, where ViT-small is on {:.2f} to {:.2f}:"
    assert words.format(*known.loc["noise"], *known.loc[""]) in " ".join(outcome.study.departures)


def test_where_noise_on_texts_goes_in_small():
    """As the findings have it, of small readers of MRPC and QQP."""
    outcome = find("vasudeva2025/language").outcome("small", Store(ROOT / "results"))
    assert {(spec.pairs, spec.seed) for spec in outcome.study.specs("small")} == {(1_500, seed) for seed in range(3)}
    assert "readers of two to four layers, 1,500 pairs of MRPC and of QQP, three seeds" in FINDINGS
    sets = [(outcome.table.loc[outcome.table["data"] == name], name) for name in ("mrpc", "qqp")]
    tells, compared = [], 0
    for rows, name in sets:
        for layers in (2,) if name == "mrpc" else (2, 3, 4):
            pair = [pick(rows, model, layers=layers) for model in (LSTM, ROBERTA)]
            tells += language.above(*pair)
            compared += len(matches(*pair))
    assert len(tells) == 8 and all(tells) and compared == 12
    assert language.above(*(pick(outcome.table, model, split="valid") for model in (LSTM, ROBERTA))) == []

    (qqp, _), by_code = sets[1], {model: RELEASED[model] for model in (LSTM, ROBERTA)}

    def ratio(**noise):
        pairs = matches(*(pick(qqp, model, **noise.get(model, {})) for model in (LSTM, ROBERTA)))
        lstm, roberta = (sum(each.values[i] for each in pairs) for i in (0, 1))
        return lstm / roberta

    after = [at_end(qqp, model).mean() for model in (LSTM, ROBERTA)]
    words = (
        "by a factor of {:.1f}, with the noise after the LayerNorm of either embedding. At the end of training that is "
    )
    words += "{:.1f} ({:.3f} against {:.3f})"
    assert words.format(ratio(), after[0] / after[1], *after) in FINDINGS
    parts = [at_end(qqp, model, what=what).mean() for model in (LSTM, ROBERTA) for what in ("late", "early")]
    words = "the LSTM has {:.3f} in the last quarter of a text and {:.3f} in the first, RoBERTa {:.3f} and {:.3f}."
    assert words.format(*parts) in FINDINGS
    code = [at_end(qqp, model, what="pooled", **by_code[model]).mean() for model in (LSTM, ROBERTA)]
    assert "at the end, it is {:.0f} ({:.3f} against {:.4f}).".format(code[0] / code[1], *code) in FINDINGS
    known = []
    for model, more in ((ROBERTA, {}), (LSTM, by_code[LSTM])):
        rows = pick(qqp, model, **more)
        known.append(rows.loc[rows["step"] == rows["step"].max(), "accuracy"].mean())
    assert f"RoBERTa is right on {known[0]:.2f} of the training texts" in FINDINGS
    assert f"on {known[1]:.2f}; where RoBERTa is about as accurate the factor is {ratio(**by_code):.1f}." in FINDINGS
    early = ratio() / ratio(**{ROBERTA: {"place": "before"}})
    late = at_end(qqp, ROBERTA, place="before").mean() / after[1]
    words = (
        "changes {:.2f} times as many answers as noise after it at the accuracy of the text's LSTM, and {:.2f} times"
    )
    assert words.format(early, late) in FINDINGS
