"""What a synthesis leaves behind for pictures: images, the teacher's classes and other series, epoch by epoch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..results import Report

FRAMES = 12  # snapshots of student and images over a run
SHOWN = 20  # images kept of each frame


@dataclass(frozen=True, eq=False)
class SynthesisReport(Report):
    """Of T epochs in which synthetic images were made; S images of F epochs (about FRAMES) are kept.

    synthetic_images:  `[F, S, C, H, W]` uint8, 0–255, or feature rows `[F, S, D]`;   synthetic_labels: `[F, S]`, those
                       asked for;   synthetic_epochs: `[F]`, from 1
    teacher_classes:   `[T, C]`, how the teacher classifies each new batch
    difficulty:        `[T]`, 1 - the mean probability that the teacher gives to the intended labels
    disagreement:      `[T]`, share of the batch that the student classifies otherwise, before it learns from it
    distillation_loss: `[T]`, mean over the epoch's steps
    """

    synthetic_images: np.ndarray | None = None
    synthetic_labels: np.ndarray | None = None
    synthetic_epochs: np.ndarray | None = None
    teacher_classes: np.ndarray | None = None
    difficulty: np.ndarray | None = None
    disagreement: np.ndarray | None = None
    distillation_loss: np.ndarray | None = None


def shows(done: int, total: int) -> bool:
    """Whether epoch `done` (from 1) of `total` is one of the about FRAMES that are shown; the last one is."""
    return done == total or done % max(1, round(total / FRAMES)) == 0


class SynthesisTrace:
    """Collects, epoch by epoch, the arrays of a `SynthesisReport`; `note` adds a value to any of its series."""

    def __init__(self, epochs: int, classes: int) -> None:
        self.epochs, self.classes = epochs, classes
        self.frames: list[tuple[int, Tensor, Tensor]] = []
        self.series: dict[str, list[Tensor]] = {}

    @torch.no_grad()
    def batch(self, done: int, x: Tensor, labels: Tensor, teacher: Tensor, student: nn.Module) -> None:
        """Epoch `done` (from 1): new `x [b, ...]`, their labels `[b]`, the teacher's logits `[b, C]`, the student."""
        answers = teacher.argmax(1)
        classes = torch.arange(self.classes, device=answers.device)
        self.note("teacher_classes", (answers[:, None] == classes).sum(0))  # bincount would wait for the host
        self.note("difficulty", 1 - teacher.softmax(1).gather(1, labels[:, None]).mean())
        student.eval()
        self.note("disagreement", (student(x).argmax(1) != answers).double().mean())
        if shows(done, self.epochs):
            some = torch.linspace(0, len(x) - 1, min(SHOWN, len(x))).round().long().to(x.device)
            self.frames.append((done, x[some], labels[some]))

    def note(self, name: str, value: Tensor) -> None:
        """One more value of the series `name`."""
        self.series.setdefault(name, []).append(value.detach().clone())

    def arrays(self) -> dict[str, Any]:
        """The report's arrays so far, by field name."""
        arrays = {name: torch.stack(values).cpu().numpy() for name, values in self.series.items()}
        if self.frames:
            epochs, images, labels = zip(*self.frames, strict=True)
            shown = torch.stack(images)
            if shown.dim() == 5:
                shown = (shown.clamp(0, 1) * 255).round().to(torch.uint8)
            arrays |= {
                "synthetic_images": shown.cpu().numpy(),
                "synthetic_labels": torch.stack(labels).cpu().numpy(),
                "synthetic_epochs": np.array(epochs),
            }
        return arrays
