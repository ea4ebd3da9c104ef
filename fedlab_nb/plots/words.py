"""What pictures say: numbers in words, settings in words, and what clients are called.

percent(0.834)                   '83 %';   number, points, significance: bands and differences
setting_of(settings, "seed 0")   'digits, α = 0.1, 10 clients, seed 0', which knows whose clients these are
client_name(3, setting)          'client D ✦ sixes'; of a file's own clients 'client D (north)'; else 'client D'
short_name(3, setting)           'D ✦ sixes', 'D (north)', or 'D';   row_name(3, setting): the same, or 'client D'
known_words(setting)             ' Marked with ✦: D sixes, …' or ' Clients: A east, …', for an alt text

Clients are numbers in programs and letters where people look: both axes from 0 to 9 would be misread.

The characters of the course's one federation stand in `characters.json`: who holds the largest share of a digit, who
has the fewest images, and whose largest logits are the largest. The names of a file's own clients are known as long as
its data are in memory; without them a client is its letter.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import mean
from typing import Any

from ..data import Edits, list_present_clients, parse_clients
from ..data import letter as letter
from ..data.registry import find_client_names
from ..declared import ROOT
from ..studies.statistics import Band, difference
from ..studies.text_tables import data_size as data_size


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


@dataclass(frozen=True)
class Setting:
    """What runs have in common. words: as a picture says it;   values: by name, what says whose clients they are.

    Two settings that read alike are equal. A plain text in its place is a setting whose clients nobody knows.
    """

    words: str
    values: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return self.words

    def __bool__(self) -> bool:
        return bool(self.words)


def values_of(setting: Setting | str) -> Mapping[str, Any]:
    """The values that a setting was made from; none of a plain text."""
    return setting.values if isinstance(setting, Setting) else {}


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
    if edits.sample_edits:
        whose += f", {plural(len(edits.sample_edits), 'move')} by hand"
    elif edits.seed is not None:
        whose += f", partition of seed {edits.seed}"
    return Setting(", ".join((name_of(s["dataset"]), whose, *more)), dict(s))


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


def shorten(labels: Sequence[str], length: int = 22) -> list[str]:
    """Labels cut to `length` characters, so that one long name cannot squeeze a picture."""
    return [label if len(label) <= length else label[: length - 1] + "…" for label in labels]


# ---------------------------------------------------------------------------------------------------- clients
SYMBOL = "✦"
FEDERATION = {"dataset": "digits", "partition": "dirichlet", "alpha": 0.1, "clients": 10, "seed": 0}
LONGEST, LINE = 16, 60  # letters of a client's own name, and of all names below an axis


@cache
def stored() -> dict[int, str]:
    """{client: what it is called} of the characters, in the order of their numbers."""
    names = json.loads((ROOT / "plots" / "characters.json").read_text(encoding="utf-8"))
    return {int(client): name for client, name in names.items()}


def characters(setting: Setting | str) -> dict[int, str]:
    """The characters if `setting` is the course's federation; none of another, or of words alone."""
    of = {"partition": "dirichlet", **values_of(setting)}
    ours = all(of.get(name) == value for name, value in FEDERATION.items()) and not dealt_otherwise(
        of
    )
    return stored() if ours and not of.get("moves") else {}


def own_names(setting: Setting | str) -> dict[int, str]:
    """The names that a file gives to its own clients, if `setting` is of such a file, and those that were given by
    hand; a double is called after its client. Long ones are cut."""
    of = values_of(setting)
    hand, natural = Edits.parse(of.get("moves") or ""), of.get("partition") == "natural"
    own = find_client_names(name_of(of["dataset"]), of["clients"]) if natural else ()
    again = {of["clients"] + i: f"double of {letter(k)}" for i, k in enumerate(hand.doubles)}
    names = {**dict(enumerate(own)), **again, **hand.names}
    numbers = (
        [client_number(place, setting) for place in range(of["clients"] + len(again))]
        if names
        else []
    )
    places = [place for place, k in enumerate(numbers) if k in names]
    return dict(
        zip(places, shorten([names[numbers[place]] for place in places], LONGEST), strict=True)
    )


def client_number(place: int, setting: Setting | str) -> int:
    """The client at a place: those that are absent or unseen stand behind the others, and everybody keeps the name."""
    of = values_of(setting)
    if not (of.get("absent") or of.get("unseen")):
        return place
    names = (
        find_client_names(name_of(of["dataset"]), of["clients"])
        if of.get("partition") == "natural"
        else ()
    )
    count = of["clients"] + len(Edits.parse(of.get("moves") or "").doubles)
    gone = [parse_clients(what, of.get(what) or "", count, names) for what in ("absent", "unseen")]
    return (*list_present_clients(count, *gone), *gone[0], *gone[1])[place]


def own_letter(client: int, setting: Setting | str) -> str:
    """The letter of the client at a place."""
    return letter(client_number(client, setting))


def own_name(client: int, setting: Setting | str) -> str:
    """A client in a sentence or a table: 'D (north)', or 'D'; characters have no other name there."""
    name = own_names(setting).get(client)
    return f"{own_letter(client, setting)} ({name})" if name else own_letter(client, setting)


def setting_of_rows(settings: Iterable[Setting | str], seeds: Iterable[int]) -> Setting | str:
    """The setting, with its seed, of rows of results whose clients are one federation's; '' where they are several.

    A file's own clients are the same for every seed.
    """
    federations = {}
    for setting in settings:
        if values_of(setting):
            federations[setting_of(values_of(setting))] = values_of(setting)
    numbers = sorted(set(seeds))
    if len(federations) != 1 or not numbers:
        return ""
    ((words, of),) = federations.items()
    if of.get("partition") == "natural":
        return words
    return setting_of({**of, "seed": numbers[0]}, f"seed {numbers[0]}") if len(numbers) == 1 else ""


def short_name(client: int, setting: Setting | str) -> str:
    """A client in a row or a list: 'D ✦ sixes', 'D (north)', or 'E'."""
    if name := characters(setting).get(client):
        return f"{letter(client)} {SYMBOL} {name}"
    return own_name(client, setting)


def client_name(client: int, setting: Setting | str) -> str:
    """A client in a title: 'client D ✦ sixes', 'client D (north)', or 'client E'."""
    return f"client {short_name(client, setting)}"


def row_name(client: int, setting: Setting | str) -> str:
    """A client at the left of its row, where there is little room: 'D ✦ sixes', 'D (north)', or 'client E'."""
    named = client in characters(setting) or client in own_names(setting)
    return (short_name if named else client_name)(client, setting)


def known_words(setting: Setting | str) -> str:
    """What an alt text adds: who the clients are that have a name."""
    if known := characters(setting):
        return f" Marked with {SYMBOL}: {_listed(known, setting)}."
    own = own_names(setting)
    return f" Clients: {_listed(own, setting)}." if own else ""


def axis_label(setting: Setting | str) -> str:
    """'client (✦ D sixes, E tiny)', 'client (A east, B north)' if there is room for all names, or 'client'."""
    if known := characters(setting):
        return f"client ({SYMBOL} {_listed(known, setting)})"
    names = _listed(own_names(setting), setting)
    return f"client ({names})" if 0 < len(names) <= LINE else "client"


def _listed(names: dict[int, str], setting: Setting | str) -> str:
    return ", ".join(f"{own_letter(k, setting)} {name}" for k, name in names.items())
