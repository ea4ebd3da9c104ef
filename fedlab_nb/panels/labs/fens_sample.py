"""FENS' lab: one test sample, every client's logits, and what is made of them."""

from __future__ import annotations

import ipywidgets as widgets
import numpy as np

from ...data import load
from ...draw import Picture
from ...draw.fens_sample import sample
from ..lab_view import LabView, Look
from .fens_tries import WIDE, where


class Sample(LabView):
    """One test sample: every client's logits, the average's answer, FENS' answer."""

    name, title, ready = "sample", "One sample", "run"
    empty = "Press Run: every client's answer to one test sample, and what is made of them."
    KINDS = ("all", "FENS right, average wrong", "FENS wrong", "every client wrong")

    def __init__(self) -> None:
        super().__init__()
        self.kind = widgets.Dropdown(
            options=self.KINDS, description="Samples", tooltip="Which test samples to leaf through", style=WIDE,
            layout={"width": "250px"},
        )  # fmt: skip
        self.at = widgets.IntSlider(
            0, 0, 0, description="Sample", tooltip="Leaf through the samples", readout=False, style=WIDE,
            layout={"width": "300px"},
        )  # fmt: skip
        self.controls = [self.kind, self.at]

    def prepare(self, look: Look) -> dict[str, np.ndarray]:
        """Logits of the test points, which are shown here and used for nothing else."""
        from ...study.experiment import test_points

        outcome = look.outcome
        data = load(outcome.setting["dataset"])
        points = test_points(len(data.y_test))
        x = data.x_test[points]
        model = outcome.model
        fens = getattr(model, "teacher", model)
        z = fens.experts(x.to(outcome.setting["device"]))
        answers = {"average": z.mean(1), "FENS": fens.logits(x.to(z.device))}
        if model is not fens:
            answers["student"] = model.logits(x.to(z.device))
        return {
            "x": x.numpy(), "y": data.y_test[points].numpy(), "points": points, "logits": z.cpu().numpy(),
            "members": outcome.artefacts["members"],
            **{f"answer {name}": scores.cpu().numpy() for name, scores in answers.items()},
        }  # fmt: skip

    def chosen(self, look: Look) -> np.ndarray:
        """Which of the prepared samples are leafed through; all, where none is of the kind that is asked for."""
        p = look.prepared
        right = {name: p[f"answer {name}"].argmax(1) == p["y"] for name in ("average", "FENS")}
        keep = {
            self.KINDS[0]: np.ones(len(p["y"]), dtype=bool),
            self.KINDS[1]: right["FENS"] & ~right["average"],
            self.KINDS[2]: ~right["FENS"],
            self.KINDS[3]: (p["logits"].argmax(2) != p["y"][:, None]).all(1),
        }[self.kind.value]
        if look.klass is not None and (keep & (p["y"] == look.klass)).any():
            keep = keep & (p["y"] == look.klass)
        return np.flatnonzero(keep) if keep.any() else np.arange(len(p["y"]))

    def adapt(self, look: Look) -> None:
        most = len(self.chosen(look)) - 1
        self.at.value = min(self.at.value, most)
        self.at.max = most

    def draw(self, look: Look) -> Picture:
        p, rows = look.prepared, self.chosen(look)
        i = int(rows[min(self.at.value, len(rows) - 1)])
        x, truth = p["x"][i], int(p["y"][i])
        if x.ndim == 3:
            x = x[0] if len(x) != 3 else x.transpose(1, 2, 0)
        names = [key.removeprefix("answer ") for key in p if key.startswith("answer ")]
        picture = sample(
            x, p["logits"][i], {name: p[f"answer {name}"][i] for name in names}, look.class_names, truth,
            setting=where(look), number=int(p["points"][i]), client=look.client, klass=look.klass,
            held=look.outcome.label_counts[p["members"], truth], clients=p["members"].tolist(),
        )  # fmt: skip
        of = f"Sample {rows.tolist().index(i) + 1} of {len(rows)}"
        picture.sentence = f"{of} ({self.kind.value}). {picture.sentence}"
        return picture
