"""FedLPA's lab: which classes can be read off the uploads, and what noise on them does to that and to accuracy."""

from __future__ import annotations

from collections.abc import Generator

import ipywidgets as widgets
import numpy as np

from ...draw import Picture
from ...draw.fedlpa_leak import leak
from ..lab_view import LabView, Look
from .fedlpa_again import again, where

NOISES = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
DIAGONAL, BIAS = "diagonal of the last B", "bias of the last layer"


class Leak(LabView):
    """Which classes can be read off the uploads, beside the true counts; and what noise does to both."""

    name, title, ready = "leak", "What leaks", "run"
    empty = "Press Run: which classes a client holds, read off what it has sent."

    def __init__(self) -> None:
        super().__init__()
        self.source = widgets.Dropdown(
            options=[DIAGONAL, BIAS], value=DIAGONAL, description="Read", layout={"width": "260px"},
            tooltip="Which numbers of the upload the attacker reads; plain averaging sends the bias too",
            style={"description_width": "40px"},
        )  # fmt: skip
        self.noise = widgets.SelectionSlider(
            options=[(f"{n:g}", n) for n in NOISES], value=0.0, description="Noise", layout={"width": "280px"},
            tooltip="Laplace noise on all uploads, as a share of each tensor's size; no privacy guarantee",
            style={"description_width": "46px"},
        )  # fmt: skip
        self.controls = [self.source, self.noise]

    def prepare(self, look: Look) -> Generator[None, None, dict]:
        import torch

        from ...comm import from_upper_triangle
        from ...methods.parts.label_leak import label_leak

        server, large = again(look.outcome)
        options, last = look.outcome.setting["options"], look.outcome.extras["layers"][-1]
        counts = torch.as_tensor(np.asarray(look.outcome.artefacts["train_counts"]))
        sent: dict[str, list] = {DIAGONAL: [], BIAS: []}
        precision: dict[str, list] = {DIAGONAL: [], BIAS: []}
        accuracy, chance = [], 0.0
        for noise in NOISES:
            scores, shares = [], {DIAGONAL: [], BIAS: []}
            for draw in range(1 if large or not noise else 3):
                received = server.uploads(options["damping"], options["pi"], noise, seed=draw)
                scores.append(server.accuracy(server.use("exact", received)))
                read = {DIAGONAL: [from_upper_triangle(r["factors"][last]["b"]).diagonal() for r in received]}
                if f"{last}.bias" in received[0]["state"]:
                    read[BIAS] = [r["state"][f"{last}.bias"] for r in received]
                for what, numbers in read.items():
                    stack = torch.stack(numbers).cpu()
                    found = label_leak(stack, counts)
                    shares[what].append(found["precision"])
                    chance = found["chance"]
                    if draw == 0:
                        sent[what].append(stack.double().numpy())
                yield
            accuracy.append(float(np.mean(scores)))
            for what in shares:
                precision[what].append(float(np.mean(shares[what])) if shares[what] else None)
        return {"sent": sent, "precision": precision, "accuracy": accuracy, "chance": chance, "counts": counts.numpy()}

    def draw(self, look: Look) -> Picture:
        known = look.prepared
        what = self.source.value if known["sent"][self.source.value] else DIAGONAL
        chosen = NOISES.index(self.noise.value)
        counts, sent = known["counts"], known["sent"][what][chosen]
        held = (counts > 0).sum(1)
        guesses = [np.argsort(-row, kind="stable")[:n].tolist() for row, n in zip(sent, held, strict=True)]
        return leak(
            counts, sent, guesses, look.class_names, setting=where(look.outcome), what=what, noises=NOISES,
            chosen=chosen, precision=known["precision"][what], accuracy=known["accuracy"], chance=known["chance"],
            client=look.client, klass=look.klass,
        )  # fmt: skip
