"""Train the networks anew and keep their weights."""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).parents[1]))
from fashion import MAKERS, WEIGHTS, accuracy, train  # noqa: E402

device = "cuda" if torch.cuda.is_available() else "cpu"
WEIGHTS.mkdir(exist_ok=True)
for name in MAKERS:
    model = train(name, device)
    kept = {key: part.half().cpu().contiguous() for key, part in model.state_dict().items()}
    save_file(kept, WEIGHTS / f"{name}.safetensors")
    print(f"{name}: train {accuracy(model, 'train', device):.4f}, test {accuracy(model, 'test', device):.4f}")
