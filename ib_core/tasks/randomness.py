"""Randomness, paired: what is random about a trial depends on its seed and on nothing else.

The method's name, the learning rate and the neighbours in a stack are never ingredients, so EB
and IB with one seed start from the same weights and see the same batches.

Chance inside a user's model is tied to (seed, step, place). Under `vmap` torch draws for all
members from one generator: a member's dropout mask would depend on its place in the stack and on
who has left. Here every draw is made outside, from a generator of its own, so that a trial sees the
same masks alone and in any company.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from ib_core.errors import MisuseError, first_line

if TYPE_CHECKING:
    from ib_core.tasks.task import Task


def build_model(task: Task, seed: int, values: Mapping[str, Any]) -> nn.Module:
    """Return a new model with its seed's initial weights; torch's generators stay as they were.

    Parts that a user's models have in common, as a frozen backbone, are copied: parts change.

    Raises:
        MisuseError: If what its function returns is no such model.
    """
    model, key = _returned(task, seed, values), tuple(sorted(values.items()))
    if key not in task.shared:
        task.shared[key] = _have_parts_in_common(task, model, _returned(task, seed, values))
    return deepcopy(model) if task.shared[key] else model


def _returned(task: Task, seed: int, values: Mapping[str, Any]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = task.model(**values)
    place = first_line(task.model)
    if not isinstance(model, nn.Module):
        raise MisuseError(
            f"The model function of {task.name} must return an nn.Module; "
            f"got {type(model).__name__}."
        ).at(place)
    if any(map(is_lazy, model.parameters())):
        raise MisuseError(
            f"The model of {task.name} has lazy layers, whose weights would be drawn in the first "
            "pass: say their sizes."
        ).at(place)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise MisuseError(f"The model of {task.name} has no parameters to learn.").at(place)
    return model


def _have_parts_in_common(task: Task, model: nn.Module, again: nn.Module) -> bool:
    """Return whether two models of one seed have modules in common.

    Raises:
        MisuseError: If weights that are learnt are the same tensors, or have other values.
    """
    place, ours = first_line(task.model), {id(p) for p in model.parameters() if p.requires_grad}
    if any(id(parameter) in ours for parameter in again.parameters()):
        raise MisuseError(
            f"The model function of {task.name} must make a new model whenever it is called; it "
            "returned weights that it had returned before."
        ).at(place)
    one, other = ({**dict(m.named_parameters()), **dict(m.named_buffers())} for m in (model, again))
    names = [name for name in one if name not in other or not _same(one[name], other[name])]
    if names or len(one) != len(other):
        raise MisuseError(
            f"The model function of {task.name} gives other weights when it is called again with "
            f"the same seed ({', '.join(names[:3])}): draw them from torch's generator."
        ).at(place)
    return not {*map(id, model.modules())}.isdisjoint(map(id, again.modules()))


def _same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype or one.is_meta:
        return one.shape == other.shape and one.dtype == other.dtype
    return bool(((one == other) | ((one != one) & (other != other))).all())


@dataclass(frozen=True, slots=True)
class Streams:
    """Independent generators for the three random parts of a training run."""

    weights: torch.Generator
    order: torch.Generator
    dropout: torch.Generator


def generator(seed: int, purpose: str) -> torch.Generator:
    """Return a CPU generator for one purpose of one seed; different purposes never overlap."""
    digest = hashlib.sha256(f"etascope:{purpose}:{seed}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def streams(seed: int) -> Streams:
    """Return the separate generators of the text profile (docs/method.md, section 5)."""
    return Streams(
        weights=generator(seed, "weights"),
        order=generator(seed, "order"),
        dropout=generator(seed, "dropout"),
    )


def streams_of(seed: int, authors: bool) -> Streams:
    """Return the generators of a profile."""
    if not authors:
        return streams(seed)
    # The authors seeded one generator once; weights, order and dropout draw from it in turn.
    one = torch.Generator().manual_seed(seed)
    return Streams(one, one, one)


def hold_out(rows: int, share: float) -> tuple[Tensor, Tensor]:
    """Return which rows are trained on and which are held out for validation, each in order.

    They depend on the number of rows and the share alone: every seed, method and rate is chosen by
    the same rows. At least one is held out.

    Raises:
        MisuseError: If nothing would be left to train on.
    """
    held = max(1, round(share * rows))
    if held >= rows:
        raise MisuseError(f"Validation needs at least 2 training rows; there are {rows}.")
    mixed = torch.randperm(rows, generator=generator(0, "validation"))
    return mixed[held:].sort().values, mixed[:held].sort().values


def tensor_hash(*tensors: Tensor) -> str:
    """Return a short hash of the tensors' bits, the proof of pairing kept in a trial's record."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(str(tuple(tensor.shape)).encode())
        # As bytes, because NumPy does not know all of torch's types.
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


def evenly(rows: int, most: int) -> Tensor:
    """Return at most so many of the rows, evenly chosen, the first and the last among them."""
    return torch.linspace(0, rows - 1, min(rows, most)).round().long().unique()  # type: ignore[no-any-return]


class SeededChance(TorchFunctionMode):
    """While active, answers torch's random functions by draws of each member's seed.

    Args:
        seeds: One a member.
        step: Counted over the whole training.
        member: Inside `vmap` the member's number as a batched tensor; None for a model alone.
    """

    def __init__(self, seeds: Sequence[int], step: int, member: Tensor | None = None) -> None:
        super().__init__()
        self.seeds, self.step, self.member = seeds, step, member
        self.places = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Answer a random function; pass every other one on, and what is not known of these."""
        answer = ANSWERS.get(func)
        if answer is None:
            return func(*args, **(kwargs or {}))
        given = answer(self, *args, **(kwargs or {}))
        return func(*args, **(kwargs or {})) if given is None else given

    def __enter__(self) -> SeededChance:
        """Begin to answer; what is not answered here draws from the step's own seed."""
        if self.member is None:
            self._state = torch.get_rng_state()
            torch.manual_seed(_key(self.seeds[0], self.step, -1))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        """Leave torch's own generator as it was."""
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        if self.member is None:
            torch.set_rng_state(self._state)

    def draw(self, shape: Sequence[int], *, normal: bool = False) -> Tensor:
        """Return numbers of the next place, uniform in [0, 1) or normal."""
        place, self.places = self.places, self.places + 1
        unique = list(dict.fromkeys(self.seeds))
        each = {seed: _drawn(seed, self.step, place, shape, normal) for seed in unique}
        if self.member is None:
            return each[self.seeds[0]]
        whole = torch.stack([each[seed] for seed in self.seeds])
        return whole.to(self.member.device)[self.member]


def _drawn(seed: int, step: int, place: int, shape: Sequence[int], normal: bool) -> Tensor:
    # NumPy's, because inside `vmap` torch refuses to draw at all.
    source = np.random.Generator(np.random.SFC64(_key(seed, step, place)))
    draw = source.standard_normal if normal else source.random
    return torch.from_numpy(draw(tuple(shape), dtype=np.float32))


def _key(seed: int, step: int, place: int) -> int:
    digest = hashlib.sha256(f"etascope:chance:{seed}:{step}:{place}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class ChanceSeen(TorchFunctionMode):
    """Notices whether a model asks for chance at all: most do not, and need not pay for it.

    And which functions it asks for.
    """

    seen = False

    def __init__(self) -> None:
        super().__init__()
        self.functions: set[Callable[..., Any]] = set()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Note a random function; let all do what they do."""
        asked = dict(kwargs or {})
        self.functions.add(func)
        idle = func is F.scaled_dot_product_attention and not _dropped(args, asked)
        idle = idle or (func in DROPOUTS and not _active(args, asked))
        if func in ANSWERS and not idle:
            self.seen = True
        return func(*args, **asked)


def _active(args: tuple[Any, ...], asked: Mapping[str, Any]) -> bool:
    p = args[1] if len(args) > 1 else asked.get("p", 0.5)
    training = args[2] if len(args) > 2 else asked.get("training", asked.get("train", True))
    return bool(p and training)


def _dropped(args: tuple[Any, ...], asked: Mapping[str, Any]) -> bool:
    return bool(args[4] if len(args) > 4 else asked.get("dropout_p", 0.0))


#: Answers a random function; None leaves it to torch.
Answer = Callable[..., Tensor | None]


def _masked(chance: SeededChance, x: Tensor, p: float, shape: Sequence[int]) -> Tensor:
    if p >= 1:
        return x * 0.0
    kept = (chance.draw(shape) >= p).to(x.dtype)
    return x * (kept / (1 - p)).to(x.device)


def _dropout(
    chance: SeededChance,
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    train: bool = True,
) -> Tensor | None:
    """Answer `F.dropout`, and `torch.dropout`, which says `train`."""
    del inplace
    if not 0 <= p <= 1:
        return None
    return _masked(chance, input, p, input.shape) if training and train and p else input


def _channels(batched: Sequence[int], single: Sequence[int]) -> Answer:
    """Return what drops whole channels of [rows, channels, ...] or of [channels, ...].

    Args:
        batched: How many dimensions there are with rows in front.
        single: How many without.
    """

    def dropout(
        chance: SeededChance,
        input: Tensor,
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
    ) -> Tensor | None:
        del inplace
        if input.dim() not in (*batched, *single) or not 0 <= p <= 1:
            return None
        front = 2 if input.dim() in batched else 1
        shape = (*input.shape[:front], *[1] * (input.dim() - front))
        return _masked(chance, input, p, shape) if training and p else input

    return dropout


#: What draws know; whatever else is asked for (a generator, `out`) torch answers by itself.
_KNOWN = {"dtype", "device"}


def _filled(normal: bool) -> Answer:
    def answer(chance: SeededChance, *given: Any, size: Any = None, **asked: Any) -> Tensor | None:
        if (size is None) is not bool(given) or not asked.keys() <= _KNOWN:
            return None
        whole = given if size is None else (size,)
        if len(whole) == 1 and isinstance(whole[0], Sequence):
            whole = tuple(whole[0])
        dtype = asked.get("dtype") or torch.get_default_dtype()
        return _typed(chance.draw(tuple(map(int, whole)), normal=normal), asked, dtype)

    return answer


def _alike(normal: bool) -> Answer:
    def answer(chance: SeededChance, input: Tensor, **asked: Any) -> Tensor | None:
        dtype = asked.get("dtype") or input.dtype
        if not dtype.is_floating_point or not asked.keys() <= _KNOWN:
            return None
        drawn = chance.draw(input.shape, normal=normal)
        return _typed(drawn, {"device": input.device, **asked}, dtype)

    return answer


def _bernoulli(
    chance: SeededChance, input: Tensor, p: float | None = None, **asked: Any
) -> Tensor | None:
    """Answer with ones where the input, or one p for all, is the probability."""
    if asked or not (p is None or 0 <= p <= 1):
        return None
    return (chance.draw(input.shape).to(input.device) < (input if p is None else p)).to(input.dtype)


def _typed(drawn: Tensor, asked: Mapping[str, Any], dtype: torch.dtype) -> Tensor:
    return drawn.to(device=asked.get("device"), dtype=dtype)


def _attention(
    chance: SeededChance,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return attention with a seeded mask; torch's own where nothing is dropped."""
    if not dropout_p or enable_gqa:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    size = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.transpose(-2, -1) * size
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        else:
            scores = scores + attn_mask
    seen = scores.softmax(-1)
    return _masked(chance, seen, dropout_p, seen.shape) @ value


DROPOUTS = (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, torch.dropout)
#: Torch's random functions, each with what answers it.
ANSWERS: dict[Callable[..., Any], Answer] = {
    **dict.fromkeys((F.dropout, torch.dropout), _dropout),
    F.dropout1d: _channels([3], [2]),
    F.dropout2d: _channels([3, 4], []),  # torch takes three for rows, channels and a length
    F.dropout3d: _channels([5], [4]),
    F.scaled_dot_product_attention: _attention,
    torch.rand: _filled(normal=False),
    torch.randn: _filled(normal=True),
    torch.rand_like: _alike(normal=False),
    torch.randn_like: _alike(normal=True),
    torch.bernoulli: _bernoulli,
}
