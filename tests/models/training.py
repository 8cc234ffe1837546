"""What the tests of several models share: a few steps of training, and torch's own layers with our weights."""

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


class Largest(TorchDispatchMode):
    """Within: how many numbers the largest tensor has that is made."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.numbers = max(self.numbers, out.numel())
        return out


def losses(model, loss, steps=200, lr=1e-3, optimizer=torch.optim.Adam):
    """The loss of each step; `loss(step)` computes it."""
    optimizer = optimizer(model.parameters(), lr=lr)
    seen = []
    for step in range(steps):
        value = loss(step)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        seen.append(value.item())
    return seen


def falls(seen, to):
    """Whether the mean of the last twenty losses is below `to` times that of the first twenty."""
    return sum(seen[-20:]) < to * sum(seen[:20])


def size(model):
    return sum(weight.numel() for weight in model.parameters())


def reached(model, loss):
    """The parameters that a gradient does not reach."""
    model.zero_grad()
    loss.backward()
    return [
        name for name, weight in model.named_parameters() if weight.grad is None or not bool((weight.grad != 0).any())
    ]


def torch_attention(ours, heads):
    """torch's attention with the weights of ours."""
    theirs = nn.MultiheadAttention(ours.query.in_features, heads, batch_first=True).double()
    copy_attention(ours, theirs)
    return theirs


@torch.no_grad()
def copy_attention(ours, theirs):
    theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
    theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_block(ours, theirs):
    """Our layer's weights into torch's encoder or decoder layer."""
    copy_attention(ours.attention, theirs.self_attn)
    if hasattr(ours, "cross"):
        copy_attention(ours.cross, theirs.multihead_attn)
        theirs.norm3.load_state_dict(ours.norm3.state_dict())
    theirs.linear1.load_state_dict(ours.up.state_dict())
    theirs.linear2.load_state_dict(ours.down.state_dict())
    theirs.norm1.load_state_dict(ours.norm1.state_dict())
    theirs.norm2.load_state_dict(ours.norm2.state_dict())


@torch.no_grad()
def shuffled(model):
    """The model in float64 with every weight, bias and gain moved, so that none is the zero or one it starts as."""
    model = model.double()
    for weight in model.parameters():
        weight.add_(0.3 * torch.randn_like(weight))
    return model
