"""What the picture of hand-set weights says: sentence, alt text and table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from .words import is_noise, percent, plural

YOURS, EQUAL, LEARNT, REAL = "yours", "equal", "Co-Boosting", "real images"
ROWS = (EQUAL, YOURS, LEARNT, REAL)


def shares_of(w: Sequence[float]) -> np.ndarray:
    """w / Σ w; equal shares where Σ w = 0."""
    w = np.asarray(w, dtype=float)
    return w / w.sum() if w.sum() > 0 else np.full(len(w), 1 / len(w))


def sentence(
    tune: Mapping[str, float],
    judge: Mapping[str, float] | None,
    gap: tuple[float, float],
    sizes: tuple[int, int],
    spoilt: bool,
) -> str:
    difference, wide = (100 * v for v in gap)
    about = f"{difference:+.0f} ± {wide:.0f} points"
    about += ", within the noise" if is_noise(difference, wide) else ", more than noise"
    if math.isnan(wide):
        about = f"{difference:+.0f} points, too few images to tell"
    last = "You tune on test images, Co-Boosting never sees one: the judge half decides."
    if judge is None and difference == wide == 0:
        return f"On the {sizes[0]} images of the tune half equal weights are right for {percent(tune[EQUAL])}. {last}"
    if judge is None:
        return (
            f"On the {sizes[0]} images of the tune half your weights are right for {percent(tune[YOURS])}, equal ones "
            f"for {percent(tune[EQUAL])} ({about}). {last}"
        )
    text = f"Judge half: your weights {percent(judge[YOURS])}, equal ones {percent(judge[EQUAL])} ({about})"
    others = [f"{who} {percent(judge[who])}" for who in (LEARNT, REAL) if who in judge]
    text += f"; {', '.join(others)}." if others else "."
    if spoilt:
        return f"{text} You moved weights after looking, so this half no longer judges: it is tuned on, too."
    return f"{text} On the tune half yours had {percent(tune[YOURS])}."


def alt_text(
    shares: Mapping[str, np.ndarray],
    tune: Mapping[str, float],
    judge: Mapping[str, float] | None,
    setting: str,
    client: int | None,
    klass: int | None,
) -> str:
    clients = len(shares[YOURS])
    heaviest = [int(k) for k in np.argsort(-shares[YOURS], kind="stable")[:3]]
    most = ", ".join(f"client {k} {percent(shares[YOURS][k])}" for k in heaviest)
    halves = [("tune half", tune), *([("judge half", judge)] if judge else [])]
    scores = "; ".join(f"{name}: " + ", ".join(f"{who} {percent(v)}" for who, v in h.items()) for name, h in halves)
    marked = f" Client {client} is marked." if client is not None else ""
    marked += f" Class number {klass} is marked." if klass is not None else ""
    return (
        f"Ensemble weights of {plural(clients, 'client')} ({setting}) above the training samples of each class that "
        f"they hold; yours are largest for {most}. Accuracy, {scores}.{marked}"
    )


def table(
    shares: Mapping[str, np.ndarray], tune: Mapping[str, float], judge: Mapping[str, float] | None
) -> list[dict[str, str]]:
    return [
        {
            "weights": who,
            "tune half": percent(tune[who]),
            **({"judge half": percent(judge[who])} if judge else {}),
            **{f"client {k}": percent(share) for k, share in enumerate(shares[who])},
        }
        for who in shares
    ]
