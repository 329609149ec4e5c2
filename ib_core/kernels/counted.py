"""The torch calls of some work, noted: how many launches, and whether the same ones again."""

from collections import Counter
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Launches(TorchDispatchMode):
    """Notes the torch calls made inside it.

    Attributes:
        names: How often each operator was called, views apart.
        calls: Every call in order, with its numbers and the shapes of its tensors.
        at_host: Calls that read or made a tensor on the processor.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: Counter[str] = Counter()
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.at_host: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Note a call and make it."""
        found = func(*args, **(kwargs or {}))
        leaves = tree_leaves((args, kwargs))
        self.calls.append((str(func), tuple(_plainly(leaf) for leaf in leaves)))
        if not func.is_view:
            self.names[str(func)] += 1
        if any(isinstance(part, Tensor) and part.is_cpu for part in (*leaves, *tree_leaves(found))):
            self.at_host.append(str(func))
        return found

    @property
    def total(self) -> int:
        """How many launches there were."""
        return sum(self.names.values())


def _plainly(leaf: Any) -> Any:
    return tuple(leaf.shape) if isinstance(leaf, Tensor) else leaf
