"""Figures and claims in texts: finding them, rewriting the figures, and saying what disagrees with the studies."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..results import data_size
from ..statistics import band
from .engine import COMMAND, Figures, Values

FIGURE = re.compile(r"<!--n (?P<study>\w+)\.(?P<what>[^>]+?)-->(?P<shown>.*?)<!--/n-->", re.DOTALL)
BLOCK = re.compile(r"^\s*(?:[-*>]\s+|\d+\.\s+)?<!--[nc] .*", re.MULTILINE)  # Markdown takes such a line for HTML
CLAIM = re.compile(r"<!--c (?P<study>\w+)\.(?P<claim>\w+)-->")
FOLDERS = ("fedlab_nb/course/*", "notebooks/instructor", "notebooks", ".", "notebooks/guide")


def shown(values: Values, form: str) -> str:
    """How a figure is written. `values`: by seed, of a share 0-1 unless a form below says otherwise.

    >>> shown({0: 0.52, 1: 0.54}, ""), shown({0: 0.50, 1: 0.60}, "mean"), shown({0: 0.52, 1: 0.60}, "each")
    ('53 ± 13', '55', '52 60')
    """
    of, all_ = band(values), list(values.values())
    percent = "" if math.isnan(of.half_width) else f" ± {100 * of.half_width:.0f}"
    forms = {
        "": lambda: f"{100 * of.mean:.0f}{percent}",  # mean and 95 % band over seeds, in percent
        "mean": lambda: f"{100 * of.mean:.0f}",
        "fine": lambda: f"{100 * of.mean:.1f} ± {100 * of.half_width:.1f}",
        "verdict": lambda: of.verdict,
        "counts": lambda: " ".join(f"{v:.0f}" for v in all_),  # of whole numbers: each
        "each": lambda: " ".join(f"{100 * v:.0f}" for v in all_),
        "low": lambda: f"{100 * min(all_):.0f}",
        "high": lambda: f"{100 * max(all_):.0f}",
        "above": lambda: f"{sum(v > 0 for v in all_)}",  # number of seeds with a difference above zero
        "below": lambda: f"{sum(v < 0 for v in all_)}",
        "tenths": lambda: f"{of.mean:.1f}",
        "hundredths": lambda: f"{of.mean:.2f}",
        "whole": lambda: f"{of.mean:,.0f}",
        "bytes": lambda: data_size(of.mean),
    }
    if form not in forms:
        raise ValueError(f"{form!r} is no form of a figure; there are {', '.join(filter(None, forms))}.")
    return re.sub(r"-(?=0(?![\d.]))", "", forms[form]()).replace("-", "−")


def figure(study: Figures, what: str) -> str:
    """`server`, `server:mean`, `server@0-2:each` as it is to be written."""
    name, _, form = what.partition(":")
    name, _, seeds = name.partition("@")
    values = study.value(name, study.rows())
    if seeds:
        first, _, last = seeds.partition("-")
        values = {seed: v for seed, v in values.items() if int(first) <= seed <= int(last or first)}
    return shown(values, form)


def pages(root: Path) -> Iterator[Path]:
    """All Markdown texts that may name figures."""
    for folder in FOLDERS:
        yield from sorted(root.glob(f"{folder}/*.md"))


def mended(text: str, studies: Mapping[str, Figures]) -> str:
    """`text` with the figures of `studies` as they are now."""

    def put(match: re.Match) -> str:
        if match["study"] not in studies:
            return match[0]
        return f"<!--n {match['study']}.{match['what']}-->{figure(studies[match['study']], match['what'])}<!--/n-->"

    return FIGURE.sub(put, text)


def quoted(text: str, template: str, study: Figures) -> str:
    """`text` with the figures of a template such as "{server} % against {equal:mean} %" as they are now. A space of the
    template stands for any white space. ValueError if the text has no such place."""
    pieces = re.split(r"\{([^}]+)\}", template)
    fixed = [r"\s+".join(map(re.escape, re.split(r"\s+", piece))) for piece in pieces[::2]]
    pattern = re.compile(r"([^\n]{1,60}?)".join(f"({part})" for part in fixed))
    if not pattern.search(text):
        raise ValueError(f"no place reads like {template!r}")
    values = [figure(study, what) for what in pieces[1::2]]

    def put(match: re.Match) -> str:
        parts = list(match.groups())
        parts[1::2] = values
        return "".join(parts)

    return pattern.sub(put, text)


def changes(root: Path, studies: Mapping[str, Figures]) -> Iterator[tuple[Path, str, str]]:
    """(path, text, text as it should be) of everything that names a figure of `studies`; may raise ValueError."""
    for path in pages(root):
        text = path.read_text(encoding="utf-8")
        yield path, text, mended(text, studies)
    for study in studies.values():
        for name, templates in study.quotes.items():
            text = new = (root / name).read_text(encoding="utf-8")
            for template in templates:
                new = quoted(new, template, study)
            yield root / name, text, new


def rewrite(root: Path, studies: Mapping[str, Figures]) -> list[Path]:
    """Put today's figures into all texts; the files that changed."""
    changed = []
    for path, text, new in list(changes(root, studies)):  # all of them can be read, or none is changed
        if new != text:
            path.write_text(new, encoding="utf-8")
            changed.append(path)
    return changed


def complaints(root: Path, studies: Mapping[str, Figures]) -> list[str]:
    """One sentence for each text that disagrees with its study, and for each claim that does not hold or stands in no
    text."""
    lines, marked = [], set()
    for path, text, new in changes(root, studies):
        if new != text:
            lines.append(f"{path.name}: a figure differs from its study; run {COMMAND} --texts")
    for path in pages(root):
        text = path.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            wrong = "a line must not begin with a comment, or Markdown takes it for HTML"
            lines.append(f"{path.name}: {wrong}: {match[0]}")
        for match in CLAIM.finditer(text):
            marked.add((match["study"], match["claim"]))
            if match["study"] in studies and match["claim"] not in studies[match["study"]].claims:
                lines.append(f"{path.name}: study {match['study']} declares no claim {match['claim']!r}")
    for study in studies.values():
        rows = study.rows()
        for claim in study.claims:
            holds, words = study.judge(claim, rows)
            if not holds:
                lines.append(f"{study.name}: {claim} ({study.claims[claim]}) does not hold: {words}")
            if (study.name, claim) not in marked:
                lines.append(f"{study.name}: no text marks the claim {claim} with <!--c {study.name}.{claim}-->")
    return lines
