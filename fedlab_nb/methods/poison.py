"""Poisoned clients: some of the M clients harm the others by what they send. A setting of any run,
such as "labels:2".

    poison = "none"  |  KIND:COUNT  |  "scaled:COUNT:FACTOR"  |  "lie:COUNT:LOGIT"

- `labels`: the client's labels are flipped, y becomes C - 1 - y, in all that it does (Fang et al., USENIX Security
  2020). Its held-out samples are flipped, too. Where these are the validation images, validation accuracy is measured
  on flipped labels. The test labels are right.
- `sign`: the client trains honestly and sends θ_0 - (θ_k - θ_0), its change of the model with the other sign.
- `scaled`: the client trains honestly and sends θ_0 + f (θ_k - θ_0), its change f times as large. FACTOR is f; without
  it f is 10 (Bagdasaryan et al., AISTATS 2020, have f = M/η).
- `lie`: the client trains and sends honestly. When an ensemble asks it, it answers falsely (`parts/byzantine.py`).
  A rule that reads probabilities gets probability 1 for one class. A rule that reads logits gets a logit as large as
  the largest of the honest clients' for the same sample. LOGIT sets another size for both rules. Logits have no bound
  of their own, so what a liar can do to such a rule depends on the size that the rule accepts.

θ_0 is the model that the client received. Only parameters are changed. Batch norm's statistics stay
as they are, because a variance may not be negative. The poisoned clients are drawn from the run's
seed. The client of COUNT = 1 is among those of COUNT = 2.

Methods that add up what clients send have no defence against any of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

import torch
from torch import Tensor

from ..data.input_types import ClientIndices
from ..errors import (
    UsageError,
    check_allowed_name,
    check_number,
    check_whole_number,
    parse_if_number,
)
from ..models.state import ModelState
from ..rng import make_torch_generator
from ..tensor_types import Labels, SampleIndices

PoisonKind = Literal["labels", "sign", "scaled", "lie"]
KINDS: tuple[PoisonKind, ...] = get_args(PoisonKind)
DEFAULT_FACTOR = 10.0


@dataclass(frozen=True)
class Poison:
    """The attack of poisoned clients.

    kind: one of KINDS
    count: number of poisoned clients
    factor: of the change of a model; 1 for an honest one
    logit: of a lie; 0 for the largest logit of the honest clients
    """

    kind: PoisonKind = "labels"
    count: int = 0
    factor: float = 1.0
    logit: float = 0.0

    @classmethod
    def parse(cls, text: str, client_count: int) -> Poison:
        """Parse the setting `poison`, such as "labels:2". UsageError for another text, or for more than
        `client_count` clients.
        """
        if str(text).strip() == "none":
            return cls()
        kind, *parts = (part.strip() for part in str(text).split(":"))
        if kind not in KINDS:
            check_allowed_name("poison", kind, ("none", *(f"{name}:COUNT" for name in KINDS)))
        known_kind = cast(PoisonKind, kind)
        may_have_size = kind in ("scaled", "lie")
        if len(parts) != 1 and not (len(parts) == 2 and may_have_size):
            raise UsageError(
                f"poison is {text!r}, but must be none, labels:COUNT, sign:COUNT, "
                "lie:COUNT, lie:COUNT:LOGIT or scaled:COUNT:FACTOR."
            )
        count = check_whole_number(
            "poison's count",
            parse_if_number(parts[0]),
            0,
            client_count,
            hint="it is how many of the clients are poisoned",
        )
        if count == 0:
            return cls()
        if kind == "lie":
            size = 0.0
            if len(parts) == 2:
                hint = "it is the logit that a liar gives the class that it names"
                size = check_number(
                    "poison's logit",
                    parse_if_number(parts[1]),
                    0,
                    1e6,
                    excludes_low=True,
                    hint=hint,
                )
            return cls(known_kind, count, logit=size)
        if kind == "scaled":
            factor = DEFAULT_FACTOR
            if len(parts) == 2:
                factor = check_number("poison's factor", parse_if_number(parts[1]), -1e6, 1e6)
            return cls(known_kind, count, factor)
        if kind == "sign":
            return cls(known_kind, count, factor=-1.0)
        return cls(known_kind, count)

    def __str__(self) -> str:
        """The setting in its one form: "none", "labels:2", "scaled:1:10", "lie:2:20"."""
        if not self.count:
            return "none"
        size = ""
        if self.kind == "scaled":
            size = f":{self.factor:g}"
        if self.logit:
            size = f":{self.logit:g}"
        return f"{self.kind}:{self.count}{size}"

    @property
    def changes_models(self) -> bool:
        """True if it changes the models that are sent, and not the labels."""
        return self.count > 0 and self.kind in ("sign", "scaled")

    @property
    def changes_answers(self) -> bool:
        """True if it changes a client's answers in an ensemble, and neither labels nor models."""
        return self.count > 0 and self.kind == "lie"

    def choose_poisoned_clients(self, client_count: int, seed: int) -> ClientIndices:
        """Draw which of `client_count` clients are poisoned: their indices, ascending, from the run's `seed`."""
        order = torch.randperm(
            client_count, generator=make_torch_generator(seed, "poisoned clients")
        )
        return tuple(sorted(order[: self.count].tolist()))

    def copy_labels_with_shards_flipped(
        self, labels: Labels, shards_of_poisoned_clients: Iterable[SampleIndices], class_count: int
    ) -> Labels:
        """Copy `labels [N]`, with y flipped to C - 1 - y in the poisoned clients' shards (indices of samples).

        Returns `labels` itself if no labels are poisoned.
        """
        if self.kind != "labels" or not self.count:
            return labels
        changed = labels.clone()
        for rows in shards_of_poisoned_clients:
            rows = rows.to(labels.device)
            changed[rows] = class_count - 1 - labels[rows]
        return changed

    def make_poisoned_state(
        self,
        start_state: Mapping[str, Tensor],
        trained_state: ModelState,
        names_to_change: Iterable[str],
    ) -> ModelState:
        """The state that a poisoned client sends in place of its `trained_state`.

        start_state: where its training began
        names_to_change: the entries that are changed
        """
        changed = dict(trained_state)
        for name in names_to_change:
            changed[name] = start_state[name] + self.factor * (
                trained_state[name] - start_state[name]
            )
        return changed
