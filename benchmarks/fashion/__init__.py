"""A CNN (V appendix D) and a ViT (of ViT-small's depth and width) on Fashion-MNIST, trained once and kept in weights/.

python benchmarks/fashion      train both anew (two minutes on a GPU) and say how good they are
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from teeter.data import fashion_mnist
from teeter.models.cnn import cnn

WEIGHTS = Path(__file__).parent / "weights"
MEAN, STD = 0.2860, 0.3530


class Block(nn.Module):
    """Attention and MLP, each after a LayerNorm and around a residual."""

    def __init__(self, dim: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """Patches of 4 x 4, depth 8 and width 64 as V's ViT-small has, with plain patches and attention."""

    def __init__(self, depth: int = 8, dim: int = 64, heads: int = 4, hidden: int = 256, tokens: int = 49) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, dim, 4, stride=4)
        self.place = nn.Parameter(torch.randn(tokens, dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(dim, heads, hidden) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.embed(images).flatten(2).transpose(1, 2) + self.place
        return self.head(self.norm(self.blocks(x)).mean(1))


MAKERS = {"cnn": cnn, "vit": ViT}
EPOCHS = {"cnn": 12, "vit": 25}


def images(split: str, device: str) -> tuple[Tensor, Tensor]:
    """Standardised images and their labels."""
    data = fashion_mnist(split)
    return data.standardised(MEAN, STD).to(device), data.labels.to(device)


def trained(name: str, device: str) -> nn.Module:
    """The network with its kept weights, which are in half precision."""
    model = MAKERS[name]()
    model.load_state_dict({key: part.float() for key, part in load_file(WEIGHTS / f"{name}.safetensors").items()})
    return model.eval().to(device)


def train(name: str, device: str, batch: int = 256, rate: float = 1e-3) -> nn.Module:
    torch.manual_seed(0)
    model = MAKERS[name]().to(device)
    x, y = images("train", device)
    steps = len(x) // batch
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=EPOCHS[name] * steps)
    for _ in range(EPOCHS[name]):
        for here in torch.randperm(len(x), device=device)[: steps * batch].view(steps, batch):
            loss = F.cross_entropy(model(x[here]), y[here])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.half().float().eval()


@torch.no_grad()
def accuracy(model: nn.Module, split: str, device: str) -> float:
    x, y = images(split, device)
    right = [int((model(a).argmax(-1) == b).sum()) for a, b in zip(x.split(4096), y.split(4096), strict=True)]
    return sum(right) / len(x)
