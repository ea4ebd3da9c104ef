"""Numbers in words: percentages, bytes, settings, and whether a difference is more than noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any


def percent(share: float) -> str:
    """0.834 -> '83 %'."""
    return f"{100 * share:.0f} %"


def data_size(count: float) -> str:
    """Bytes in decimal units: 26280 -> '26.3 kB'."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(count) < 1000 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError


def listed(words: Sequence[str]) -> str:
    """['a', 'b', 'c'] -> 'a, b and c'."""
    words = list(words)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def plural(count: int, word: str) -> str:
    """(1, 'client') -> '1 client', (2, 'client') -> '2 clients', (2, 'class') -> '2 classes'."""
    return f"{count} {word}" + ("" if count == 1 else "es" if word.endswith("s") else "s")


def seeds_of(values: Mapping[int, Any]) -> str:
    """'seed 0', 'seeds 0–2', 'seeds 0, 3'."""
    seeds = sorted(values)
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]}–{seeds[-1]}"
    return "seeds " + ", ".join(map(str, seeds))


def setting_of(s: Mapping[str, Any]) -> str:
    """'digits, α = 0.1, 10 clients' from a setting's dict; a partition other than Dirichlet is named instead of α."""
    partition = s.get("partition", "dirichlet")
    skew = f"α = {s['alpha']:g}" if partition == "dirichlet" else f"partition {partition}"
    if partition == "quantity":
        skew += f", α = {s['alpha']:g}"
    return f"{name_of(s['dataset'])}, {skew}, {plural(s['clients'], 'client')}"


def name_of(dataset: str) -> str:
    """A data set's name; of a path, the file alone."""
    return str(dataset).replace("\\", "/").rsplit("/", 1)[-1]


def half_width(values: Sequence[float]) -> float:
    """Two standard errors of the mean; nan for a single value."""
    return 2 * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def gap(a: Mapping[int, float], b: Mapping[int, float], paired: bool = True) -> tuple[float, float]:
    """Mean of a − b over seeds and twice its standard error (nan with fewer than two seeds).

    Paired by seed where both have it and `paired` says that a seed means the same federation for both.
    """
    common = sorted(set(a) & set(b))
    if paired and len(common) > 1:
        differences = [a[s] - b[s] for s in common]
        return mean(differences), half_width(differences)
    wide = math.hypot(half_width(list(a.values())), half_width(list(b.values())))
    return mean(a.values()) - mean(b.values()), wide


def is_noise(difference: float, wide: float) -> bool:
    """Whether a difference is no larger than its band; unknown (one seed) counts as neither, see `math.isnan(wide)`."""
    return not math.isnan(wide) and abs(difference) <= wide
