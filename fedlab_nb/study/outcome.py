"""What one run of one method gives: numbers, curves, bytes, and enough arrays for every picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..comm import Ledger


@dataclass(eq=False)
class Outcome:
    """Result of one method on one federation.

    `accuracy`: 0–1 on the global test set. `per_class [C]`. `per_client [M]`: what each client would see at home, the
    class accuracies weighted by its own label mix. `history`: dicts with `phase`, `progress` (0–1 over the run),
    `accuracy`, `bytes` (sent so far, both ways). `seconds`: wall time by phase as it was measured when the work was
    done, also where it was remembered since (`cached`: the run; `clients_cached`: its clients). `test_*`: the same at
    most 500 fixed test points for every method. `parameters`: numbers in the model that predicts.
    """

    method: str
    setting: dict[str, Any]
    accuracy: float
    per_class: list[float | None]
    per_client: list[float]
    ledger: Ledger
    history: list[dict[str, Any]]
    seconds: dict[str, float]
    parameters: int
    label_counts: np.ndarray
    skew: dict[str, float]
    test_features: np.ndarray
    test_labels: np.ndarray
    test_predictions: np.ndarray
    extras: dict[str, Any] = field(default_factory=dict)
    artefacts: dict[str, np.ndarray] = field(default_factory=dict)
    cached: bool = False
    clients_cached: bool = False
    _model: Callable[[], Any] | None = field(default=None, repr=False)

    @property
    def seconds_local(self) -> float:
        """Local training that this result rests on."""
        return self.seconds.get("local training", 0.0)

    @property
    def seconds_total(self) -> float:
        return sum(self.seconds.values())

    @property
    def seconds_method(self) -> float:
        """Everything but local training, evaluation included."""
        return self.seconds_total - self.seconds_local

    @property
    def bytes_up(self) -> int:
        return self.ledger.up

    @property
    def bytes_down(self) -> int:
        return self.ledger.down

    # ------------------------------------------------------------------------------------------- the model
    @property
    def model(self) -> Any:
        """The global model. A run that came from the store is computed again from its remembered clients, once."""
        model = self._model()
        self._model = lambda: model
        return model

    def _samples(self, x: Any) -> Any:
        import torch

        x = torch.as_tensor(np.asarray(x) if not isinstance(x, torch.Tensor) else x)
        return x.to(self.setting["device"], torch.float32)

    def predict(self, x: Any) -> np.ndarray:
        """Classes `[N]` of samples `x [N, ...]` (prepared as the data set's own: see `fedlab_nb.data.load`)."""
        return self.model.predict(self._samples(x)).cpu().numpy()

    def features(self, x: Any) -> np.ndarray:
        """Feature vectors `[N, D]` that the last linear map reads (for ensembles: the concatenated logits)."""
        return self.model.features(self._samples(x)).cpu().numpy()

    # ------------------------------------------------------------------------------------------- as text and files
    def to_json(self) -> dict[str, Any]:
        """The flat record that the command line prints."""
        s = self.setting
        return {
            "method": self.method,
            "dataset": s["dataset"],
            "alpha": s["alpha"],
            "clients": s["clients"],
            "seed": s["seed"],
            "preset": s["preset"],
            "device": s["device"],
            "accuracy": self.accuracy,
            "bytes_up": self.bytes_up,
            "bytes_down": self.bytes_down,
            "parameters": self.parameters,
            "seconds_local": round(self.seconds_local, 4),
            "seconds_method": round(self.seconds_method, 4),
            "seconds_total": round(self.seconds_total, 4),
            "cached": self.cached,
            "clients_cached": self.clients_cached,
            "partition": s["partition"],
            "model": s["model"],
            "skew": self.skew,
            "extras": self.extras,
        }

    def to_entry(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """`(values, arrays)` for the store."""
        values = {
            "method": self.method,
            "setting": self.setting,
            "accuracy": self.accuracy,
            "per_class": self.per_class,
            "per_client": self.per_client,
            "ledger": self.ledger.to_json(),
            "history": self.history,
            "seconds": self.seconds,
            "parameters": self.parameters,
            "skew": self.skew,
            "extras": self.extras,
        }
        arrays = {
            "label_counts": self.label_counts,
            "test_features": self.test_features,
            "test_labels": self.test_labels,
            "test_predictions": self.test_predictions,
        }
        return values, arrays | {f"artefact.{name}": array for name, array in self.artefacts.items()}

    @classmethod
    def from_entry(cls, values: dict[str, Any], arrays: dict[str, np.ndarray], model: Callable[[], Any]) -> Outcome:
        values = values | {"ledger": Ledger.from_json(values["ledger"])}
        prefix = "artefact."
        artefacts = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        plain = {n: a for n, a in arrays.items() if not n.startswith(prefix)}
        return cls(**values, **plain, artefacts=artefacts, cached=True, clients_cached=True, _model=model)
