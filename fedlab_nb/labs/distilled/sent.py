"""The images that a client sends, beside the nearest of its own: what an attacker would see."""

import numpy as np

from ...panels import LabView, PanelState
from ...plots import Picture, capital, listed, plural
from ...plots.characters import client_name, own_name
from ...studies.outcome import Outcome
from ..nearest import Neighbours, attacks, pairs
from ..runs import where

WAYS = {
    "random": "random samples", "kmeans": "centres of k-means", "kip": "kernel inducing points",
    "crops": "FedSD2C-like crops",
}  # fmt: skip


class Sent(LabView):
    """The images that a client sends, and the nearest of its own."""

    name, title = "sent", "What is sent"

    def prepare(self, state: PanelState) -> list[Neighbours]:
        return attack(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        prepared, at, names = state.prepared, state.client, state.class_names
        of, setting = prepared[at if at is not None and at < len(prepared) else 0], where(state)
        title = f"{capital(client_name(of.client, setting))} sends {WAYS[state.outcome.options['images']]}"
        return pairs(
            of, names, title, sentence(of, names, setting), setting=setting, klass=state.klass
        )


def attack(outcome: Outcome) -> list[Neighbours]:
    """`neighbours` of every client of a run, among the samples that it trained on."""
    report = outcome.report

    def sent(client: int) -> tuple[np.ndarray, ...]:
        own = report.client == client
        return (
            report.images[own].astype(np.float32),
            report.labels[own],
            np.ones(own.sum(), dtype=int),
        )

    return attacks(outcome, sent)


def sentence(of: Neighbours, class_names: list[str], setting: str) -> str:
    """Which classes the labels show, and how many images are the client's own."""
    held, copies = [class_names[c] for c in sorted(set(of.labels.tolist()))], int(of.copies.sum())
    return (
        f"Client {own_name(of.client, setting)} sends {plural(len(of.labels), 'image')} of "
        f"{plural(len(held), 'class')} ({listed(held)}): their labels say which classes it holds. {copies} of the "
        f"images are its own, pixel by pixel; the median distance to the nearest of its own is "
        f"{np.median(of.distance):.3f} per pixel."
    )
