"""Numbers in words: percentages, bytes, settings, and whether a difference is more than noise."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from ..data import Edits
from ..data import letter as letter
from ..studies.results import data_size as data_size
from ..studies.statistics import Band, difference


def percent(share: float) -> str:
    """0.834 -> '83 %'."""
    return f"{100 * share:.0f} %"


def mean_percent(shares: Mapping[int, float] | Sequence[float]) -> str:
    """The mean of shares, `{seed: share}` or a list: {0: 0.8, 1: 0.9} -> '85 %'."""
    return percent(mean(shares.values() if isinstance(shares, Mapping) else shares))


def capital(text: str) -> str:
    """The text with its first letter large."""
    return text[:1].upper() + text[1:]


def listed(words: Sequence[str]) -> str:
    """['a', 'b', 'c'] -> 'a, b and c'."""
    words = list(words)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def tabled(columns: str | Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """A picture's table: a dict a row. tabled("client | share", [(0, "5 %")]) -> [{"client": 0, "share": "5 %"}]."""
    names = columns.split(" | ") if isinstance(columns, str) else columns
    return [dict(zip(names, row, strict=True)) for row in rows]


def worded(text: str, kind: str) -> str:
    """A sentence about images in the words of another kind of samples (`errors.SAMPLES`).

    >>> worded("An image of 20 images", "recordings"), worded("test images", "feature rows")
    ('A recording of 20 recordings', 'test samples')
    """
    word = {"recordings": "recording", "feature rows": "sample"}.get(kind)
    return (
        re.sub(r"\b([Aa])n(?= image)|\bimage(?=s?\b)", lambda at: at[1] or word, text)
        if word
        else text
    )


def duration(seconds: float) -> str:
    """Seconds that are no more than a guess: 'about 8 s', 'about 40 s', 'about 10 min'."""
    if seconds >= 90:
        return f"about {seconds / 60:.0f} min"
    return f"about {max(1, round(seconds, -1) if seconds > 20 else round(seconds)):.0f} s"


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


class Setting(str):
    """A setting in words that still has the values which it was made from, by name."""

    of: Mapping[str, Any] = {}


def setting_of(s: Mapping[str, Any], *more: str) -> Setting:
    """'digits, α = 0.1, 10 clients' from a setting's dict; a partition other than Dirichlet is named instead of α.

    more: what is said after it, such as "seed 0"
    """
    partition = s.get("partition", "dirichlet")
    skew = f"α = {s['alpha']:g}" if partition == "dirichlet" else f"partition {partition}"
    if partition in ("quantity", "client_dirichlet"):
        skew += f", α = {s['alpha']:g}"
    edits = Edits.parse(s.get("moves") or "")
    clients = plural(s["clients"] + len(edits.doubles), "client")
    whose = (
        f"{skew}, {clients}{dealt_otherwise(s)}"
        if partition != "natural"
        else f"its own {clients}{away(s)}"
    )
    if edits.of_samples:
        whose += f", {plural(len(edits.of_samples), 'move')} by hand"
    elif edits.seed is not None:
        whose += f", partition of seed {edits.seed}"
    made = Setting(", ".join((name_of(s["dataset"]), whose, *more)))
    made.of = dict(s)
    return made


def dealt_otherwise(s: Mapping[str, Any]) -> str:
    """What else makes the clients' samples others than usual: ', 50 % of the samples, at least 5 a client'."""
    words = {
        f"{percent(s.get('share', 1))} of the samples": s.get("share", 1) != 1,
        f"lognormal sizes ({s.get('size_sigma')})": s.get("size_sigma", 0),
        f"at least {s.get('minimum')} per client": s.get("minimum", 0),
        f"repair {s.get('repair')}": s.get("repair", "move") != "move",
    }
    return "".join(f", {word}" for word, differs in words.items() if differs) + away(s)


def away(s: Mapping[str, Any]) -> str:
    """How many clients are absent or unseen: ', 2 absent'; '' if all take part."""
    words = ""
    for what in ("absent", "unseen"):
        given = s.get(what) or 0
        if isinstance(given, str):
            given = (
                int(given)
                if given.isdecimal()
                else [part for part in given.split(",") if part.strip()]
            )
        count = given if isinstance(given, int) else len(given)
        words += f", {count} {what}" if count else ""
    return words


def name_of(dataset: str) -> str:
    """A data set's name; of a path, the file alone."""
    return str(dataset).replace("\\", "/").rsplit("/", 1)[-1]


def number(of: Band, decimals: int | None = None, sign: str = "") -> str:
    """A share and its band in per cent, without the unit: '84 ± 2'; of one seed '84'. decimals: usually none, and one
    where it says more of the band, '84.3 ± 0.4', or of a small difference, '0.4 ± 0.0'
    sign "+": with a plus, for a difference
    """
    if decimals is None:
        decimals = int(
            of.half_width < 0.01 and (of.half_width >= 0.0005 or 0.0005 <= abs(of.mean) < 0.01)
        )
    mean = round(100 * of.mean, decimals) + 0.0  # no "-0"
    text = f"{mean:{sign if mean else ''}.{decimals}f}"
    return text if math.isnan(of.half_width) else f"{text} ± {100 * of.half_width:.{decimals}f}"


def points(of: Band, sign: str = "+") -> str:
    """A difference of shares and its band in points: '+3 ± 1 points'; of one seed '+3 points'. sign "": no plus."""
    return f"{number(of, sign=sign)} points"


def significance(
    of: Band, *, noise: str = "within the noise", clear: str = "clear", one_seed: str = ""
) -> str:
    """Which words the verdict on a difference gets: `noise`, `clear`, or `one_seed` where there is no band (then:
    `clear`, if `one_seed` is empty). One sentence for every picture's way of saying it.

    significance(difference(a, b), noise="which is within the noise", one_seed="one seed: nobody can tell")
    """
    return {"within the noise": noise, "one seed": one_seed or clear}.get(of.verdict, clear)


def band_words(of: Band) -> str:
    """A band in a table: '1.2 points', or 'one seed' where there is none."""
    return "one seed" if math.isnan(of.half_width) else f"{100 * of.half_width:.1f} points"


def seed_words(shares: Mapping[int, float]) -> str:
    """Every seed's share in a table: '0: 81.2 %, 1: 79.9 %'."""
    return ", ".join(f"{seed}: {100 * share:.1f} %" for seed, share in sorted(shares.items()))


def gap(guess: float, measured: float, unit: str = "%", near: float = 1) -> str:
    """How far a guess is off: '48 points too low', of another unit '2.3 digits too high'; below `near` 'very near'."""
    off = guess - measured
    if abs(off) < near:
        return "very near"
    return f"{abs(off):.3g} {'points' if unit == '%' else unit} too {'high' if off > 0 else 'low'}".replace(
        "  ", " "
    )


def apart(a: Mapping[int, float], b: Mapping[int, float], **words: str) -> str:
    """'+12 ± 3 points, clear' of a − b, paired by seed; `words` as for `significance` (clear, noise)."""
    of = difference(a, b)
    return f"{points(of)}, {significance(of, **words)}"
