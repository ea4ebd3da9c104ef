"""What pictures say: numbers in words, settings in words, and what clients are called.

percent(0.834)                   '83 %';   format_share, format_points, describe_significance: bands and differences
make_setting(settings, "seed 0") 'digits, α = 0.1, 10 clients, seed 0', which knows whose clients these are
client_name(3, setting)          'client D ✦ sixes'; of a file's own clients 'client D (north)'; else 'client D'
short_name(3, setting)           'D ✦ sixes', 'D (north)', or 'D';   row_name(3, setting): the same, or 'client D'
describe_known_clients(setting)  ' Marked with ✦: D sixes, …' or ' Clients: A east, …', for an alt text

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
from ..data import format_letters as format_letters
from ..data.registry import find_client_names
from ..declared import ROOT
from ..studies.statistics import Band, difference
from ..studies.text_tables import data_size as data_size


def percent(share: float) -> str:
    """0.834 -> '83 %'."""
    return f"{100 * share:.0f} %"


def mean_percent(shares: Mapping[int, float] | Sequence[float]) -> str:
    """The mean of shares, `{seed: share}` or a list: {0: 0.8, 1: 0.9} -> '85 %'."""
    values = shares.values() if isinstance(shares, Mapping) else shares
    return percent(mean(values))


def capitalize(text: str) -> str:
    """The text with its first letter large; all others stay."""
    return text[:1].upper() + text[1:]


def join_words(words: Sequence[str]) -> str:
    """['a', 'b', 'c'] -> 'a, b and c'."""
    *others, last = list(words) or [""]
    if not others:
        return last
    return f"{', '.join(others)} and {last}"


def build_table(
    columns: str | Sequence[str], rows: Iterable[Sequence[Any]]
) -> list[dict[str, Any]]:
    """A picture's table: a dict a row.

    >>> build_table("client | share", [(0, "5 %")])
    [{'client': 0, 'share': '5 %'}]
    """
    names = columns.split(" | ") if isinstance(columns, str) else columns
    return [dict(zip(names, row, strict=True)) for row in rows]


def adapt_sample_words(text: str, kind: str) -> str:
    """A sentence about images in the words of another kind of samples (`errors.SAMPLES`).

    >>> adapt_sample_words("An image of 20 images", "recordings")
    'A recording of 20 recordings'
    """
    word = {"recordings": "recording", "feature rows": "sample"}.get(kind)
    if word is None:
        return text
    text = re.sub(r"\b([Aa])n(?= image)", r"\1", text)
    return re.sub(r"\bimage(?=s?\b)", word, text)


def format_duration(seconds: float) -> str:
    """Seconds that are no more than a guess: 'about 8 s', 'about 40 s', 'about 10 min'."""
    if seconds >= 90:
        return f"about {seconds / 60:.0f} min"
    rounded = round(seconds, -1) if seconds > 20 else round(seconds)
    return f"about {max(1, rounded):.0f} s"


def plural(count: int, word: str) -> str:
    """(1, 'client') -> '1 client', (2, 'client') -> '2 clients', (2, 'class') -> '2 classes'."""
    if count == 1:
        return f"{count} {word}"
    ending = "es" if word.endswith("s") else "s"
    return f"{count} {word}{ending}"


def describe_seeds(values: Mapping[int, Any]) -> str:
    """'seed 0', 'seeds 0–2', 'seeds 0, 3'."""
    seeds = sorted(values)
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]}–{seeds[-1]}"
    return "seeds " + ", ".join(str(seed) for seed in seeds)


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


def get_setting_values(setting: Setting | str) -> Mapping[str, Any]:
    """The values that a setting was made from; none of a plain text."""
    return setting.values if isinstance(setting, Setting) else {}


def make_setting(settings: Mapping[str, Any], *more: str) -> Setting:
    """'digits, α = 0.1, 10 clients' from a setting's dict; a partition other than Dirichlet is named instead of α.

    more: what is said after it, such as "seed 0"
    """
    partition = settings.get("partition", "dirichlet")
    edits = Edits.parse(settings.get("moves") or "")
    clients = plural(settings["clients"] + len(edits.doubles), "client")
    if partition == "natural":
        whose = f"its own {clients}{describe_missing_clients(settings)}"
    else:
        skew = describe_skew(partition, settings)
        whose = f"{skew}, {clients}{describe_partition_options(settings)}"
    if edits.sample_edits:
        whose += f", {plural(len(edits.sample_edits), 'move')} by hand"
    elif edits.seed is not None:
        whose += f", partition of seed {edits.seed}"
    words = ", ".join((name_dataset(settings["dataset"]), whose, *more))
    return Setting(words, dict(settings))


def describe_skew(partition: str, settings: Mapping[str, Any]) -> str:
    """'α = 0.1', 'partition classes' or 'partition quantity, α = 0.1'."""
    if partition == "dirichlet":
        return f"α = {settings['alpha']:g}"
    if partition in ("quantity", "client_dirichlet"):
        return f"partition {partition}, α = {settings['alpha']:g}"
    return f"partition {partition}"


def describe_partition_options(settings: Mapping[str, Any]) -> str:
    """What else makes the clients' samples others than usual: ', 50 % of the samples, at least 5 per client'."""
    words = []
    if settings.get("share", 1) != 1:
        words.append(f"{percent(settings['share'])} of the samples")
    if settings.get("size_sigma", 0):
        words.append(f"lognormal sizes ({settings['size_sigma']})")
    if settings.get("minimum", 0):
        words.append(f"at least {settings['minimum']} per client")
    if settings.get("repair", "move") != "move":
        words.append(f"repair {settings['repair']}")
    text = "".join(f", {word}" for word in words)
    return text + describe_missing_clients(settings)


def describe_missing_clients(settings: Mapping[str, Any]) -> str:
    """How many clients are absent or unseen: ', 2 absent'; '' if all take part."""
    text = ""
    for role in ("absent", "unseen"):
        count = count_listed_clients(settings.get(role) or 0)
        if count:
            text += f", {count} {role}"
    return text


def count_listed_clients(value: int | str | Sequence[Any]) -> int:
    """How many clients a setting such as `absent` means: 3, "3", "0,D" or a list."""
    if isinstance(value, int):
        return value
    if not isinstance(value, str):
        return len(value)
    if value.isdecimal():
        return int(value)
    return len([part for part in value.split(",") if part.strip()])


def name_dataset(dataset: str) -> str:
    """A data set's name; of a path, the file alone."""
    return str(dataset).replace("\\", "/").rsplit("/", 1)[-1]


def format_share(
    share: Band, decimals: int | None = None, sign: str = "", *, few_seeds: bool = False
) -> str:
    """A share and its band in per cent, without the unit: '84 ± 2'; of fewer than five seeds '84'.

    decimals: usually none, and one where it says more of the band, '84.3 ± 0.4', or of a small difference, '0.4 ± 0.0'
    sign:     "+": with a plus, for a difference
    few_seeds: whether the band of fewer than five seeds is written, too: in a report, not on a screen
    """
    if decimals is None:
        decimals = choose_decimals(share)
    mean = round(100 * share.mean, decimals) + 0.0  # no "-0"
    text = f"{mean:{sign if mean else ''}.{decimals}f}"
    is_known = not math.isnan(share.half_width)
    if not share.is_shown and not (few_seeds and is_known):
        return text
    return f"{text} ± {100 * share.half_width:.{decimals}f}"


def choose_decimals(share: Band) -> int:
    """Decimals of a share in per cent: one where its band is below a point and says more with it, else none."""
    if not share.half_width < 0.01:
        return 0
    is_small_difference = 0.0005 <= abs(share.mean) < 0.01
    return int(share.half_width >= 0.0005 or is_small_difference)


def format_points(difference: Band, sign: str = "+", *, few_seeds: bool = False) -> str:
    """A difference of shares and its band in points: '+3 ± 1 points'; of few seeds '+3 points'. sign "": no plus."""
    return f"{format_share(difference, sign=sign, few_seeds=few_seeds)} points"


def describe_significance(
    difference: Band, *, noise: str = "within the noise", clear: str = "clear", one_seed: str = ""
) -> str:
    """Which words the verdict on a difference gets: `noise`, `clear`, or `one_seed` where there is no band (then:
    `clear`, if `one_seed` is empty). One sentence for every picture's way of saying it.

    describe_significance(difference(a, b), noise="which is within the noise", one_seed="one seed: nobody can tell")
    """
    return {"within the noise": noise, "one seed": one_seed or clear}.get(difference.verdict, clear)


def describe_band(band: Band) -> str:
    """A band in a table: '1.2 points', or 'one seed', '3 seeds' where there are too few for one."""
    if math.isnan(band.half_width):
        return "one seed"
    if not band.is_shown:
        return plural(band.n, "seed")
    return f"{100 * band.half_width:.1f} points"


def describe_each_seed(shares: Mapping[int, float]) -> str:
    """Every seed's share in a table: '0: 81.2 %, 1: 79.9 %'."""
    return ", ".join(f"{seed}: {100 * share:.1f} %" for seed, share in sorted(shares.items()))


def describe_gap(guess: float, measured: float, unit: str = "%", near: float = 1) -> str:
    """How far a guess is off: '48 points too low', of another unit '2.3 digits too high'; below `near` 'very near'."""
    gap = guess - measured
    if abs(gap) < near:
        return "very near"
    words = [f"{abs(gap):.3g}", "points" if unit == "%" else unit]
    words.append("too high" if gap > 0 else "too low")
    return " ".join(word for word in words if word)


def describe_difference(a: Mapping[int, float], b: Mapping[int, float], **words: str) -> str:
    """'+12 ± 3 points, clear' of a − b, paired by seed; `words` as for `describe_significance` (clear, noise)."""
    gap = difference(a, b)
    return f"{format_points(gap)}, {describe_significance(gap, **words)}"


def shorten(labels: Sequence[str], length: int = 22) -> list[str]:
    """Labels cut to `length` characters, so that one long name cannot squeeze a picture."""
    return [label if len(label) <= length else label[: length - 1] + "…" for label in labels]


# ---------------------------------------------------------------------------------------------------- clients
SYMBOL = "✦"
FEDERATION = {"dataset": "digits", "partition": "dirichlet", "alpha": 0.1, "clients": 10, "seed": 0}
LONGEST_NAME = 16  # letters of a client's own name
LONGEST_LABEL = 60  # letters of all names below an axis


@cache
def load_characters() -> dict[int, str]:
    """{client: what it is called} of the characters, in the order of their numbers."""
    names = json.loads((ROOT / "plots" / "characters.json").read_text(encoding="utf-8"))
    return {int(client): name for client, name in names.items()}


def find_characters(setting: Setting | str) -> dict[int, str]:
    """The characters if `setting` is the course's federation; none of another, or of words alone."""
    values = {"partition": "dirichlet", **get_setting_values(setting)}
    for name, value in FEDERATION.items():
        if values.get(name) != value:
            return {}
    if describe_partition_options(values) or values.get("moves"):
        return {}
    return load_characters()


def find_given_names(setting: Setting | str) -> dict[int, str]:
    """The names that a file gives to its own clients, if `setting` is of such a file, and those that were given by
    hand, by place; a double is called after its client. Long ones are cut."""
    values = get_setting_values(setting)
    edits = Edits.parse(values.get("moves") or "")
    names: dict[int, str] = {}
    if values.get("partition") == "natural":
        names |= enumerate(find_client_names(name_dataset(values["dataset"]), values["clients"]))
    for number, client in enumerate(edits.doubles):
        names[values["clients"] + number] = f"double of {format_letters(client)}"
    names |= edits.names
    if not names:
        return {}
    found = {}
    for place in range(values["clients"] + len(edits.doubles)):
        number = client_number(place, setting)
        if number in names:
            found[place] = shorten([names[number]], LONGEST_NAME)[0]
    return found


def client_number(place: int, setting: Setting | str) -> int:
    """The client at a place: those that are absent or unseen stand behind the others, and everybody keeps the name."""
    values = get_setting_values(setting)
    if not (values.get("absent") or values.get("unseen")):
        return place
    names: Sequence[str] = ()
    if values.get("partition") == "natural":
        names = find_client_names(name_dataset(values["dataset"]), values["clients"])
    count = values["clients"] + len(Edits.parse(values.get("moves") or "").doubles)
    absent = parse_clients("absent", values.get("absent") or "", count, names)
    unseen = parse_clients("unseen", values.get("unseen") or "", count, names)
    return (*list_present_clients(count, absent, unseen), *absent, *unseen)[place]


def client_letter(client: int, setting: Setting | str) -> str:
    """The letter of the client at a place."""
    return format_letters(client_number(client, setting))


def plain_client_name(client: int, setting: Setting | str) -> str:
    """A client in a sentence or a table: 'D (north)', or 'D'; characters have no other name there."""
    text = client_letter(client, setting)
    name = find_given_names(setting).get(client)
    return f"{text} ({name})" if name else text


def describe_shared_setting(
    settings: Iterable[Setting | str], seeds: Iterable[int]
) -> Setting | str:
    """The setting, with its seed, of rows of results whose clients are one federation's; '' where they are several.

    A file's own clients are the same for every seed.
    """
    federations = {}
    for setting in settings:
        if get_setting_values(setting):
            federations[make_setting(get_setting_values(setting))] = get_setting_values(setting)
    numbers = sorted(set(seeds))
    if len(federations) != 1 or not numbers:
        return ""
    ((shared, values),) = federations.items()
    if values.get("partition") == "natural":
        return shared
    if len(numbers) > 1:
        return ""
    return make_setting({**values, "seed": numbers[0]}, f"seed {numbers[0]}")


def short_name(client: int, setting: Setting | str) -> str:
    """A client in a row or a list: 'D ✦ sixes', 'D (north)', or 'E'."""
    name = find_characters(setting).get(client)
    if name:
        return f"{format_letters(client)} {SYMBOL} {name}"
    return plain_client_name(client, setting)


def client_name(client: int, setting: Setting | str) -> str:
    """A client in a title: 'client D ✦ sixes', 'client D (north)', or 'client E'."""
    return f"client {short_name(client, setting)}"


def row_name(client: int, setting: Setting | str) -> str:
    """A client at the left of its row, where there is little room: 'D ✦ sixes', 'D (north)', or 'client E'."""
    if client in find_characters(setting) or client in find_given_names(setting):
        return short_name(client, setting)
    return client_name(client, setting)


def describe_known_clients(setting: Setting | str) -> str:
    """What an alt text adds: who the clients are that have a name."""
    known = find_characters(setting)
    if known:
        return f" Marked with {SYMBOL}: {_join_client_names(known, setting)}."
    names = find_given_names(setting)
    if names:
        return f" Clients: {_join_client_names(names, setting)}."
    return ""


def make_client_axis_label(setting: Setting | str) -> str:
    """'client (✦ D sixes, E tiny)', 'client (A east, B north)' if there is room for all names, or 'client'."""
    known = find_characters(setting)
    if known:
        return f"client ({SYMBOL} {_join_client_names(known, setting)})"
    names = _join_client_names(find_given_names(setting), setting)
    if names and len(names) <= LONGEST_LABEL:
        return f"client ({names})"
    return "client"


def _join_client_names(names: dict[int, str], setting: Setting | str) -> str:
    return ", ".join(f"{client_letter(k, setting)} {name}" for k, name in names.items())
