"""Nudge one token inside the network: after a named module, or after the embedding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from teeter.errors import InputError, UnknownName
from teeter.perturb.inputs import Inputs, count
from teeter.perturb.noise import Noise, check_sigma2, root_mean_square
from teeter.perturb.tokens import text_positions

__all__ = ["EmbeddingNoise", "HiddenNoise"]


@dataclass(frozen=True)
class HiddenNoise:
    """Gaussian noise of variance sigma2 on one token of what a module puts out, of shape (inputs, tokens, features).

    `module` is its name in `model.named_modules()`, or an ending of it that only one module has. With `relative`, the
    standard deviation is that many times the token's own root mean square there. `tokens` is how many there are where
    the inputs do not say, as for images; otherwise padding (by the attention mask) and `skip` are left alone. With
    `whole`, all tokens are nudged at once (V A.2): an input then has one place to nudge, number 0.
    """

    module: str
    sigma2: float = 1.0
    relative: bool = False
    tokens: int | None = None
    skip: tuple[int, ...] = ()
    field: str = "input_ids"
    whole: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.module, str):
            told = f"{type(self).__name__} takes the name of a module first, got {self.module!r}"
            raise InputError(f"{told}: a variance is written sigma2=...")
        check_sigma2(self.sigma2)

    def positions(self, inputs: Inputs) -> Tensor:
        if self.whole:
            return torch.ones(count(inputs), 1, dtype=torch.bool)
        if self.tokens is None:
            return text_positions(inputs, self.field, self.skip)
        return torch.ones(count(inputs), self.tokens, dtype=torch.bool)

    def run(self, model: Callable[[Any], Any], inputs: Inputs, noise: Noise) -> Any:
        return nudged_at(self.where(model), self, model, inputs, noise)

    def where(self, model: Callable[[Any], Any]) -> nn.Module:
        return named(model, self.module)


@dataclass(frozen=True)
class EmbeddingNoise(HiddenNoise):
    """Gaussian noise on one token's embedding (V section 6).

    By default after the embedding's LayerNorm, so that the noise is not normalised away; where a model has none, after
    the last step of its embedding. `module` names any other place: "word_embeddings" is before position and LayerNorm.
    """

    module: str = "norm"

    def where(self, model: Callable[[Any], Any]) -> nn.Module:
        return named(model, self.module) if self.module != "norm" else embedding_end(model)


def named(model: Callable[[Any], Any], name: str) -> nn.Module:
    """The one module of that name, or whose name ends so."""
    modules = dict(_module(model).named_modules())
    if name in modules:
        return modules[name]
    ending = [full for full in modules if full.endswith(f".{name}")]
    if len(ending) == 1:
        return modules[ending[0]]
    if ending:
        raise InputError(f"'{name}' names {len(ending)} modules: {', '.join(ending[:5])}; write more of the name")
    raise UnknownName("module", name, [full for full in modules if full])


def embedding_end(model: Callable[[Any], Any]) -> nn.Module:
    """The last step of the embedding: its LayerNorm, else the dropout that follows it, else the module named embedding
    that holds all tables, else the one table there is."""
    modules = dict(_module(model).named_modules())
    for ending in ("embeddings.LayerNorm", "embeddings.layer_norm", "embeddings.norm"):
        found = [full for full in modules if full == ending or full.endswith(f".{ending}")]
        if found:
            return modules[found[0]]
    drop = [full for full in modules if full == "drop" or full.endswith(".drop")]
    if drop and any(isinstance(m, nn.Embedding) for m in modules.values()):
        return modules[drop[0]]  # GPT-2: token and position are added and dropped out, with no LayerNorm between
    names = [full for full, m in modules.items() if isinstance(m, nn.Embedding)]
    for full, module in modules.items():
        whole = full.rpartition(".")[-1] in ("embedding", "embeddings")
        if whole and names and all(name == full or name.startswith(f"{full}.") for name in names):
            return module
    if len(names) == 1:
        return modules[names[0]]
    raise InputError(
        f"where the embedding ends is not clear (embeddings: {', '.join(names) or 'none'}): "
        "name the place with EmbeddingNoise(module=...)"
    )


def nudged_at(place: nn.Module, how: HiddenNoise, model: Callable[[Any], Any], inputs: Inputs, noise: Noise) -> Any:
    """The model's output with noise added to one token of what `place` puts out, or to all of them."""
    fired = 0

    def nudge(module: nn.Module, given: Any, output: Any) -> Any:
        nonlocal fired
        fired += 1
        hidden = output[0] if isinstance(output, tuple) else output
        if hidden.ndim != 3 or len(hidden) != len(noise.token):
            raise InputError(
                f"noise goes to ({len(noise.token)} inputs, tokens, features), the module gave {tuple(hidden.shape)}"
            )
        rows = torch.arange(len(hidden), device=hidden.device)
        if int(noise.token.max()) >= hidden.shape[1]:
            raise InputError(f"token {int(noise.token.max())} is not among the {hidden.shape[1]} the module gave")
        token = slice(None) if how.whole else noise.token.to(hidden.device)
        clean = hidden[rows, token]
        step = noise.normal(*clean.shape[1:]).to(hidden) * check_sigma2(how.sigma2)
        if how.relative:
            step = step * root_mean_square(clean, (-1,))
        nudged = hidden.clone()
        nudged[rows, token] = clean + step
        return (nudged, *output[1:]) if isinstance(output, tuple) else nudged

    handle = place.register_forward_hook(nudge)
    try:
        result = model(inputs)
    finally:
        handle.remove()
    if fired != 1:
        times = "never ran (a fused path may have skipped it)" if fired == 0 else f"ran {fired} times in one forward"
        raise InputError(f"the module to perturb {times}: choose another injection point")
    return result


def _module(model: Callable[[Any], Any]) -> nn.Module:
    if not isinstance(model, nn.Module):
        raise InputError(f"noise inside a model needs a torch module, got {type(model).__name__}")
    return model
