"""Texts in pictures: numbers and settings in words, and the names of clients.

format_percent(0.834)               '83 %'
format_percent_band, format_difference_in_points, choose_words_by_significance: bands and differences
make_setting_caption(settings, "seed 0")   'digits, α = 0.1, 10 clients, seed 0', with the names of its clients
format_client_for_title(3, setting)        'client D ✦ sixes', 'client D (north)' with a file's own names, or 'client D'
format_client_for_list(3, setting)         'D ✦ sixes', 'D (north)', or 'D'
format_client_for_row(3, setting)          'D ✦ sixes', 'D (north)', or 'client D'
format_client_for_sentence(3, setting)     'D (north)', or 'D'
make_sentence_of_client_names(setting)     ' Marked with ✦: D sixes, …' or ' Clients: A east, …', for an alt text

Clients are numbers in the code and letters on the screen: in a picture with clients and classes
both numbered from 0 to 9, people would confuse them.

Some clients of the course's federation are characters with a name, which `characters.json` has: the
clients that hold the largest share of a digit, the one with the fewest images, and the one with the
largest logits. The names of clients that come with a file are known while its data are in memory;
otherwise such a client is called by its letter.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import mean
from typing import Any, Literal

from ..data import PartitionEdits, list_present_clients, parse_client_indices
from ..data import format_client_letters as format_client_letters
from ..data.registry import find_client_names_of_dataset_in_memory
from ..declared import ROOT
from ..studies.statistics import Band, difference
from ..studies.text_tables import format_data_size as format_data_size
from ..value_types import SettingsByName, SettingValue


def format_percent(share: float) -> str:
    """Format a share: 0.834 -> '83 %'."""
    return f"{100 * share:.0f} %"


def format_mean_percent(shares: Mapping[int, float] | Sequence[float]) -> str:
    """Format the mean of shares, `{seed: share}` or a list: {0: 0.8, 1: 0.9} -> '85 %'."""
    values = shares.values() if isinstance(shares, Mapping) else shares
    return format_percent(mean(values))


def capitalize_first_letter(text: str) -> str:
    """Return the text with a capital first letter; the other letters stay as they are."""
    return text[:1].upper() + text[1:]


def join_with_and(words: Sequence[str]) -> str:
    """Join words: ['a', 'b', 'c'] -> 'a, b and c'."""
    *leading_words, last_word = list(words) or [""]
    if not leading_words:
        return last_word
    return f"{', '.join(leading_words)} and {last_word}"


TableRows = list[dict[str, Any]]  # {column: cell} for each row


def build_table(
    columns_or_text_with_bars: str | Sequence[str], rows: Iterable[Sequence[Any]]
) -> TableRows:
    """Build a picture's table, one dict per row.

    >>> build_table("client | share", [(0, "5 %")])
    [{'client': 0, 'share': '5 %'}]
    """
    names = columns_or_text_with_bars
    if isinstance(names, str):
        names = names.split(" | ")
    return [dict(zip(names, row, strict=True)) for row in rows]


def replace_image_by_word_for_samples(text: str, sample_kind: str) -> str:
    """Replace 'image' in a sentence by the word for another kind of samples (`errors.SAMPLES`).

    >>> replace_image_by_word_for_samples("An image of 20 images", "recordings")
    'A recording of 20 recordings'
    """
    word = {"recordings": "recording", "feature rows": "sample"}.get(sample_kind)
    if word is None:
        return text
    text = re.sub(r"\b([Aa])n(?= image)", r"\1", text)
    return re.sub(r"\bimage(?=s?\b)", word, text)


def format_rough_duration(seconds: float) -> str:
    """Format a rough estimate of seconds: 'about 8 s', 'about 40 s', 'about 10 min'."""
    if seconds >= 90:
        return f"about {seconds / 60:.0f} min"
    rounded = round(seconds, -1) if seconds > 20 else round(seconds)
    return f"about {max(1, rounded):.0f} s"


def format_count_and_noun(count: int, noun: str) -> str:
    """Format a count with its noun: (1, 'client') -> '1 client', (2, 'class') -> '2 classes'."""
    if count == 1:
        return f"{count} {noun}"
    ending = "es" if noun.endswith("s") else "s"
    return f"{count} {noun}{ending}"


def describe_seeds(results_by_seed: Mapping[int, Any]) -> str:
    """Name the seeds of results: 'seed 0', 'seeds 0–2', 'seeds 0, 3'."""
    seeds = sorted(results_by_seed)
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]}–{seeds[-1]}"
    return "seeds " + ", ".join(str(seed) for seed in seeds)


@dataclass(frozen=True)
class SettingCaption:
    """The setting that runs have in common, as a caption. Two captions with the same words are
    equal.

    A plain text may be used instead of a caption; then the clients have no names.

    words:  as a picture shows them
    values: {name: value} of the settings, from which the clients' names are found
    """

    words: str
    values: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return self.words

    def __bool__(self) -> bool:
        return bool(self.words)


def get_settings_of_caption(caption: SettingCaption | str) -> dict[str, SettingValue]:
    """Return the settings from which a caption was made; {} for a plain text."""
    return caption.values if isinstance(caption, SettingCaption) else {}


def make_setting_caption(settings: SettingsByName, *extra_words: str) -> SettingCaption:
    """Make the caption of settings: 'digits, α = 0.1, 10 clients'. A partition other than Dirichlet
    is named.

    extra_words: words to add at the end, such as "seed 0"
    """
    partition = settings.get("partition", "dirichlet")
    edits = PartitionEdits.parse(settings.get("moves") or "")
    clients = format_count_and_noun(settings["clients"] + len(edits.doubled_clients), "client")
    if partition == "natural":
        partition_text = f"its own {clients}{describe_missing_clients_after_comma(settings)}"
    else:
        skew = describe_skew(partition, settings)
        partition_text = f"{skew}, {clients}{describe_partition_options_after_comma(settings)}"
    if edits.edits_that_move_or_double:
        partition_text += (
            f", {format_count_and_noun(len(edits.edits_that_move_or_double), 'move')} by hand"
        )
    elif edits.seed is not None:
        partition_text += f", partition of seed {edits.seed}"
    words = ", ".join((format_dataset_name(settings["dataset"]), partition_text, *extra_words))
    return SettingCaption(words, dict(settings))


def describe_skew(partition: str, settings: SettingsByName) -> str:
    """Describe the skew of a partition: 'α = 0.1', 'partition classes' or 'partition quantity, α =
    0.1'.
    """
    if partition == "dirichlet":
        return f"α = {settings['alpha']:g}"
    if partition in ("quantity", "client_dirichlet"):
        return f"partition {partition}, α = {settings['alpha']:g}"
    return f"partition {partition}"


def describe_partition_options_after_comma(settings: SettingsByName) -> str:
    """Describe the options of a partition that are not at their defaults: ', 50 % of the samples,
    at least 5 per client'.
    """
    words = []
    if settings.get("share", 1) != 1:
        words.append(f"{format_percent(settings['share'])} of the samples")
    if settings.get("size_sigma", 0):
        words.append(f"lognormal sizes ({settings['size_sigma']})")
    if settings.get("minimum", 0):
        words.append(f"at least {settings['minimum']} per client")
    if settings.get("repair", "move") != "move":
        words.append(f"repair {settings['repair']}")
    text = "".join(f", {word}" for word in words)
    return text + describe_missing_clients_after_comma(settings)


def describe_missing_clients_after_comma(settings: SettingsByName) -> str:
    """Say how many clients are absent or unseen: ', 2 absent'; '' if all take part."""
    text = ""
    for role in ("absent", "unseen"):
        count = count_listed_clients(settings.get(role) or 0)
        if count:
            text += f", {count} {role}"
    return text


def count_listed_clients(client_list: int | str | Sequence[Any]) -> int:
    """Count the clients that a setting such as `absent` lists: 3, "3", "0,D" or a list."""
    if isinstance(client_list, int):
        return client_list
    if not isinstance(client_list, str):
        return len(client_list)
    if client_list.isdecimal():
        return int(client_list)
    return len([part for part in client_list.split(",") if part.strip()])


def format_dataset_name(name_or_path: str) -> str:
    """Format a data set's name; of a path, the file alone."""
    return str(name_or_path).replace("\\", "/").rsplit("/", 1)[-1]


def format_percent_band(
    share: Band,
    decimals: int | None = None,
    sign: Literal["", "+"] = "",
    *,
    shows_band_of_few_seeds: bool = False,
) -> str:
    """Format a share with its band in per cent, without the unit: '84 ± 2'; with fewer than five
    seeds '84'.

    decimals:  by default none; one if the band ('84.3 ± 0.4') or a small difference ('0.4 ± 0.0') needs it
    sign:      "+" writes a plus, for a difference
    shows_band_of_few_seeds: whether to write the band of fewer than five seeds, too, as in a report
    """
    if decimals is None:
        decimals = choose_percent_decimals(share)
    mean = round(100 * share.mean, decimals) + 0.0  # no "-0"
    text = f"{mean:{sign if mean else ''}.{decimals}f}"
    is_known = not math.isnan(share.half_width)
    if not share.is_shown and not (shows_band_of_few_seeds and is_known):
        return text
    return f"{text} ± {100 * share.half_width:.{decimals}f}"


def choose_percent_decimals(share: Band) -> int:
    """Choose the decimals of a share in per cent: one if its band is below a point and not 0.0, or
    if the share is a small difference; else none.
    """
    if not share.half_width < 0.01:
        return 0
    is_small_difference = 0.0005 <= abs(share.mean) < 0.01
    return int(share.half_width >= 0.0005 or is_small_difference)


def format_difference_in_points(
    difference: Band, sign: Literal["", "+"] = "+", *, shows_band_of_few_seeds: bool = False
) -> str:
    """Format a difference of shares with its band in points: '+3 ± 1 points'; with few seeds '+3
    points'.

    sign: "+" writes a plus, "" does not
    """
    return f"{format_percent_band(difference, sign=sign, shows_band_of_few_seeds=shows_band_of_few_seeds)} points"


def choose_words_by_significance(
    difference: Band,
    *,
    noise_words: str = "within the noise",
    clear_words: str = "clear",
    one_seed_words: str = "",
) -> str:
    """Choose one of three texts by the verdict on a difference.

    noise_words:    if the band contains zero
    clear_words:    if the band does not contain zero
    one_seed_words: if there is only one seed; "" means the same as `clear_words`

    choose_words_by_significance(difference(a, b), noise_words="which is within the noise")
    """
    if difference.verdict == "within the noise":
        return noise_words
    if difference.verdict == "one seed" and one_seed_words:
        return one_seed_words
    return clear_words


def format_half_width_or_seed_count(band: Band) -> str:
    """Describe a band in a table: '1.2 points', or 'one seed' or '3 seeds' if there are too few
    seeds for a band.
    """
    if math.isnan(band.half_width):
        return "one seed"
    if not band.is_shown:
        return format_count_and_noun(band.n, "seed")
    return f"{100 * band.half_width:.1f} points"


def format_percent_of_each_seed(shares_by_seed: Mapping[int, float]) -> str:
    """List every seed's share: '0: 81.2 %, 1: 79.9 %'."""
    return ", ".join(
        f"{seed}: {100 * share:.1f} %" for seed, share in sorted(shares_by_seed.items())
    )


def describe_guess_error(
    guess: float, measured: float, unit: str = "%", tolerance_in_unit: float = 1
) -> str:
    """Describe the error of a guess: '48 points too low', '2.3 digits too high', or 'very near'."""
    gap = guess - measured
    if abs(gap) < tolerance_in_unit:
        return "very near"
    words = [f"{abs(gap):.3g}", "points" if unit == "%" else unit]
    words.append("too high" if gap > 0 else "too low")
    return " ".join(word for word in words if word)


def describe_accuracy_difference(
    accuracies_by_seed: Mapping[int, float],
    reference_by_seed: Mapping[int, float],
    *,
    noise_words: str = "within the noise",
    clear_words: str = "clear",
    one_seed_words: str = "",
) -> str:
    """Describe the mean difference to a reference, paired by seed: '+12 ± 3 points, clear'.

    noise_words, clear_words, one_seed_words: as for `choose_words_by_significance`
    """
    gap = difference(accuracies_by_seed, reference_by_seed)
    verdict = choose_words_by_significance(
        gap, noise_words=noise_words, clear_words=clear_words, one_seed_words=one_seed_words
    )
    return f"{format_difference_in_points(gap)}, {verdict}"


def shorten_labels(labels: Sequence[str], max_letters: int = 22) -> list[str]:
    """Cut labels to `max_letters` characters, so that one long name cannot squeeze a picture."""
    return [
        label if len(label) <= max_letters else label[: max_letters - 1] + "…" for label in labels
    ]


# ---------------------------------------------------------------------------------------------------- clients
SYMBOL = "✦"
FEDERATION = {"dataset": "digits", "partition": "dirichlet", "alpha": 0.1, "clients": 10, "seed": 0}
MAX_NAME_LETTERS = 16  # letters of a client's own name
MAX_LABEL_LETTERS = 60  # letters of all names below an axis
NameByClientIndex = dict[int, str]  # {index of a client in pictures: name}


@cache
def load_story_names_of_clients() -> NameByClientIndex:
    """Load the names that the course's story gives its clients, in the order of the clients."""
    names = json.loads((ROOT / "plots" / "characters.json").read_text(encoding="utf-8"))
    return {int(client): name for client, name in names.items()}


def find_story_names_of_clients(caption: SettingCaption | str) -> NameByClientIndex:
    """Find the names that the course's story gives its clients; none unless `caption` is the
    course's federation.
    """
    values = {"partition": "dirichlet", **get_settings_of_caption(caption)}
    for name, value in FEDERATION.items():
        if values.get(name) != value:
            return {}
    if describe_partition_options_after_comma(values) or values.get("moves"):
        return {}
    return load_story_names_of_clients()


def find_given_client_names(caption: SettingCaption | str) -> NameByClientIndex:
    """Find the names that a file gives its own clients, and those that a user has given by hand.

    Returns {index of the client in pictures: name, cut if it is long}. A double is named after its
    client.
    """
    values = get_settings_of_caption(caption)
    edits = PartitionEdits.parse(values.get("moves") or "")
    names: NameByClientIndex = {}
    if values.get("partition") == "natural":
        names |= enumerate(
            find_client_names_of_dataset_in_memory(
                format_dataset_name(values["dataset"]), values["clients"]
            )
        )
    for number, client in enumerate(edits.doubled_clients):
        names[values["clients"] + number] = f"double of {format_client_letters(client)}"
    names |= edits.client_names
    if not names:
        return {}
    names_by_index = {}
    for index in range(values["clients"] + len(edits.doubled_clients)):
        client = find_client_at_index_in_picture(index, caption)
        if client in names:
            names_by_index[index] = shorten_labels([names[client]], MAX_NAME_LETTERS)[0]
    return names_by_index


def find_client_at_index_in_picture(index_in_picture: int, setting: SettingCaption | str) -> int:
    """Find which client has an index of a picture.

    Absent and unseen clients come after all others in a picture, but every client keeps its letter.
    """
    values = get_settings_of_caption(setting)
    if not (values.get("absent") or values.get("unseen")):
        return index_in_picture
    names: Sequence[str] = ()
    if values.get("partition") == "natural":
        names = find_client_names_of_dataset_in_memory(
            format_dataset_name(values["dataset"]), values["clients"]
        )
    count = values["clients"] + len(PartitionEdits.parse(values.get("moves") or "").doubled_clients)
    absent = parse_client_indices("absent", values.get("absent") or "", count, names)
    unseen = parse_client_indices("unseen", values.get("unseen") or "", count, names)
    return (*list_present_clients(count, absent, unseen), *absent, *unseen)[index_in_picture]


def format_client_letter(index_in_picture: int, setting: SettingCaption | str) -> str:
    """Return the letter of the client at an index of a picture."""
    return format_client_letters(find_client_at_index_in_picture(index_in_picture, setting))


def format_client_for_sentence(index_in_picture: int, setting: SettingCaption | str) -> str:
    """Name a client in a sentence or a table: 'D (north)', or 'D'. A character of the story has
    only its letter.
    """
    text = format_client_letter(index_in_picture, setting)
    name = find_given_client_names(setting).get(index_in_picture)
    return f"{text} ({name})" if name else text


def find_common_setting_or_empty(
    settings: Iterable[SettingCaption | str], seeds: Iterable[int]
) -> SettingCaption | str:
    """Return the one setting, with its seed, by which the clients of all results can be named; ''
    if the results belong to several federations.

    Clients that come with a file are the same for every seed.
    """
    values_by_caption = {}
    for setting in settings:
        values = get_settings_of_caption(setting)
        if values:
            values_by_caption[make_setting_caption(values)] = values
    distinct_seeds = sorted(set(seeds))
    if len(values_by_caption) != 1 or not distinct_seeds:
        return ""
    ((caption, values),) = values_by_caption.items()
    if values.get("partition") == "natural":
        return caption
    if len(distinct_seeds) > 1:
        return ""
    seed = distinct_seeds[0]
    return make_setting_caption({**values, "seed": seed}, f"seed {seed}")


def format_client_for_list(index_in_picture: int, setting: SettingCaption | str) -> str:
    """Name a client in a row or a list: 'D ✦ sixes', 'D (north)', or 'E'."""
    name = find_story_names_of_clients(setting).get(index_in_picture)
    if name:
        return f"{format_client_letters(index_in_picture)} {SYMBOL} {name}"
    return format_client_for_sentence(index_in_picture, setting)


def format_client_for_title(index_in_picture: int, setting: SettingCaption | str) -> str:
    """Name a client in a title: 'client D ✦ sixes', 'client D (north)', or 'client E'."""
    return f"client {format_client_for_list(index_in_picture, setting)}"


def format_client_for_row(index_in_picture: int, setting: SettingCaption | str) -> str:
    """Name a client to the left of its row, where room is scarce: 'D ✦ sixes', 'D (north)', or
    'client E'.
    """
    has_story_name = index_in_picture in find_story_names_of_clients(setting)
    if has_story_name or index_in_picture in find_given_client_names(setting):
        return format_client_for_list(index_in_picture, setting)
    return format_client_for_title(index_in_picture, setting)


def make_sentence_of_client_names(setting: SettingCaption | str) -> str:
    """Describe which clients have a name, as a sentence of an alt text; '' if none has one."""
    story_names = find_story_names_of_clients(setting)
    if story_names:
        return f" Marked with {SYMBOL}: {_join_client_letters_and_names(story_names, setting)}."
    names = find_given_client_names(setting)
    if names:
        return f" Clients: {_join_client_letters_and_names(names, setting)}."
    return ""


def make_client_axis_label(setting: SettingCaption | str) -> str:
    """Make the label of an axis of clients: 'client (✦ D sixes, E tiny)', 'client (A east, B
    north)' if there is room for all names, or 'client'.
    """
    story_names = find_story_names_of_clients(setting)
    if story_names:
        return f"client ({SYMBOL} {_join_client_letters_and_names(story_names, setting)})"
    names = _join_client_letters_and_names(find_given_client_names(setting), setting)
    if names and len(names) <= MAX_LABEL_LETTERS:
        return f"client ({names})"
    return "client"


def _join_client_letters_and_names(
    names: NameByClientIndex, caption_for_letters: SettingCaption | str
) -> str:
    """Return 'D sixes, E tiny'."""
    texts = []
    for client, name in names.items():
        texts.append(f"{format_client_letter(client, caption_for_letters)} {name}")
    return ", ".join(texts)
