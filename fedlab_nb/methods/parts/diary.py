"""What a lesson shows of a synthesis: images, the teacher's classes and any other series, epoch by epoch."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn

from ..base import NetworkModel

FRAMES = 12  # snapshots of student and images over a run
SHOWN = 20  # images kept of each frame


def snapshot(student: nn.Module, **kept) -> NetworkModel:
    """The student as it is now; training goes on with the original. `kept`: artefacts=, numbers=."""
    return NetworkModel(copy.deepcopy(student), **kept)


def shows(done: int, total: int) -> bool:
    """Whether epoch `done` (from 1) of `total` is one of the about FRAMES that are shown; the last one is."""
    return done == total or done % max(1, round(total / FRAMES)) == 0


class Diary:
    """What a lesson shows of a synthesis, epoch by epoch.

    `artefacts()`: `synthetic_images [F, S, C, H, W]` (uint8, 0–255; S of the images of F epochs) with
    `synthetic_labels [F, S]` and `synthetic_epochs [F]`; `teacher_classes [T, C]` (how the teacher classifies each
    new batch); `difficulty [T]` (1 - the mean probability that it gives the intended labels); `disagreement [T]`
    (share of it that the student classifies otherwise, before it learns from it); and each series given to `note`,
    `[T]` or `[T, ...]`.
    """

    def __init__(self, epochs: int, classes: int) -> None:
        self.epochs, self.classes = epochs, classes
        self.frames: list[tuple[int, Tensor, Tensor]] = []
        self.series: dict[str, list[Tensor]] = {"teacher_classes": [], "difficulty": [], "disagreement": []}

    @torch.no_grad()
    def batch(self, done: int, x: Tensor, labels: Tensor, teacher: Tensor, student: nn.Module) -> None:
        """Epoch `done` (from 1): new `x [b, ...]`, their labels `[b]`, the teacher's logits `[b, C]`, the student."""
        answers = teacher.argmax(1)
        self.note("teacher_classes", torch.bincount(answers, minlength=self.classes))
        asked = teacher.softmax(1).gather(1, labels[:, None])
        self.note("difficulty", 1 - asked.mean())
        student.eval()
        self.note("disagreement", (student(x).argmax(1) != answers).double().mean())
        if shows(done, self.epochs):
            some = torch.linspace(0, len(x) - 1, min(SHOWN, len(x))).round().long().to(x.device)
            self.frames.append((done, x[some].cpu(), labels[some].cpu()))

    def note(self, name: str, value: Tensor | float) -> None:
        """One more value of the series `name`."""
        self.series.setdefault(name, []).append(torch.as_tensor(value).detach().cpu().clone())

    def artefacts(self) -> dict[str, np.ndarray]:
        found = {name: torch.stack(values).numpy() for name, values in self.series.items() if values}
        if self.frames:
            epochs, images, labels = zip(*self.frames, strict=True)
            shown = torch.stack(images)
            if shown.dim() == 5:
                shown = (shown.clamp(0, 1) * 255).round().to(torch.uint8)
            found |= {
                "synthetic_images": shown.numpy(),
                "synthetic_labels": torch.stack(labels).numpy(),
                "synthetic_epochs": np.array(epochs),
            }
        return found
