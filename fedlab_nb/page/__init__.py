"""The page without Python: `fedlab-nb page` writes one file with the stored results, to be opened from anywhere.

`template.html` says where style, data and scripts go, which lie beside it. They are plain CSS and JavaScript: no
library, no build step, no network. The numbers are those of `studies.stored`, the looks those of `plots.identity`.
"""

import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

from ..data import federate, title_of
from ..data import load as load_data
from ..declared import declared
from ..errors import RunError
from ..methods import METHODS, grouped
from ..plots.identity import look, short
from ..plots.partition import sentence
from ..plots.style import class_colours
from ..plots.vector import outline
from ..plots.words import listed
from ..studies.rows import file_of
from ..studies.statistics import band, t_quantile
from ..studies.stored import Stored, load, sets

HERE = Path(__file__).parent
DASHES = {"-": "none", "--": "7 4", "-.": "8 3 2 3", ":": "2 3.5"}
MARK = 4.6  # pixels from the middle of a marker to its end


def write(path: str | Path) -> Path:
    """Write the page to `path` and return it; RunError where that is no place to write."""
    data = json.dumps(content(), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")

    def part(place: re.Match) -> str:
        return data if place[1] == "data" else (HERE / place[1]).read_text(encoding="utf-8")

    page = re.sub(r"@(data|\w+\.(?:css|js))@", part, (HERE / "template.html").read_text(encoding="utf-8"))
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise RunError(f"The page cannot be written to {path}: {error.strerror}; choose another --out.") from None
    return Path(path)


def content() -> dict[str, Any]:
    """The page's numbers, {data set: `of_set`}, of all data sets that have a stored table."""
    return {name: of_set(load(name)) for name in sets()}


def of_set(table: Stored) -> dict[str, Any]:
    """The numbers of one data set, by method, then stored M, then stored α; t: Student's quantile of a 95 % band over
    the seeds.

    The clients' label counts are those of the first seed.
    """
    infos = [METHODS[name].info for name in table.methods]
    axes = {"alpha": table.alphas, "clients": table.clients, "seed": table.seeds}
    return {
        "about": {"date": table.about["date"], "settings": axes},
        "title": title_of(table.dataset),
        "images": images(table.dataset),
        "t": t_quantile(len(table.seeds) - 1),
        "classes": [
            {"name": name, "colour": colour}
            for name, colour in zip(load_data(table.dataset).class_names, class_colours(10), strict=True)
        ],
        "groups": grouped(table.methods),
        "methods": [vars(i) | called(table.title(i.name)) | {"needs": ""} for i in infos],
        "words": words(table),
        "results": {
            i.name: [[result(table, i.name, a, m) for a in table.alphas] for m in table.clients] for i in infos
        },
        "federations": [[partition(table, a, m) for a in table.alphas] for m in table.clients],
    }


def words(table: Stored) -> str:
    """What is stored, at the end of the page."""
    about, made = table.about, table.made(table.methods[0])
    runs = len(table.rows) * len(table.seeds)
    seeds = ", ".join(map(str, table.seeds))
    alphas = listed([f"{a:g}" for a in table.alphas])
    return (
        f"Results of {len(table.methods)} methods on {images(table.dataset)} at α = {alphas}, "
        f"with {', '.join(map(str, table.clients))} clients and seeds {seeds}: {runs} runs in all, made on "
        f"{about['date']} by fedlab_nb {about['version']} with PyTorch {about['torch']} (preset "
        f"classroom: {made['recipe.epochs']} local epochs, batches of {made['recipe.batch_size']}, "
        f"{made['recipe.optimizer'].upper()} with learning rate {made['recipe.lr']}). "
        f"“Who holds what” shows seed {seeds[0]}."
    )


def images(dataset: str) -> str:
    """What a sentence says of the data set's images; its table's declaration has the words."""
    return declared(f"studies/declared/{file_of('stored', dataset).stem}.toml")["about"]["images"]


def called(title: str) -> dict[str, str]:
    """A method's title, the short one, and its look as SVG has it."""
    colour, marker, line = look(title)
    return {
        "title": title,
        "short": short(title),
        "colour": colour,
        "outline": outline(marker, MARK),
        "dash": DASHES[line],
    }


def result(table: Stored, method: str, alpha: float, clients: int) -> dict[str, Any]:
    """Mean and half its band, 0–1, over the accuracies of the seeds; bytes of all clients, mean over seeds."""
    accuracies = table.accuracies(method, alpha, clients)
    of = band(accuracies)
    up, down = (fmean(table.values(f"bytes_{way}", method, alpha, clients).values()) for way in ("up", "down"))
    return {"mean": of.mean, "half": of.half_width, "accuracies": [*accuracies.values()], "up": up, "down": down}


def partition(table: Stored, alpha: float, clients: int) -> dict[str, Any]:
    """Who holds what: samples `[M, C]`, and sentences: of all, of each client, of each class."""
    federation = federate(table.dataset, alpha=alpha, clients=clients, seed=table.seeds[0])
    return {
        "counts": federation.label_counts.tolist(),
        "words": sentence(federation, None, None),
        "by_client": [sentence(federation, k, None) for k in range(clients)],
        "by_class": [sentence(federation, None, c) for c in range(federation.dataset.classes)],
    }
