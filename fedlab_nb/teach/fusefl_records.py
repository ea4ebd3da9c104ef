"""What lesson 06 asks of a learner's record of runs: calibration against fusion, and cue clients against none."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedlab_nb.draw.fusefl_halves import signed
from fedlab_nb.draw.words import gap, is_noise, plural

from .problem import Verdict

ENOUGH = 3  # seeds that both sides of a comparison need
FREE = {"blocks": None, "head": None}
Accuracies = Mapping[int, float]


def calibration_and_fusion(outcomes: Sequence[Any]) -> Verdict:
    """Right where, under one setting, calibration is clearly better than none, and fusing was measured beside it."""

    def place(outcome: Any) -> tuple[str, tuple[int, str]]:
        options = outcome.setting["options"]
        rest = {**outcome.setting, "seed": None, "options": {**options, **FREE}}
        return json.dumps(rest, sort_keys=True), (options["blocks"], options["head"])

    calibrated, fused, short = [], [], []
    for variants in grouped(outcomes, ("fusefl",), place).values():
        good = [_clear(a, b, f"calibration at K = {k} adds", short) for k, a, b in _by_head(variants)]
        beside = [_measured(a, b, f"fusing (K = {k} against 1) changes", short) for k, a, b in _by_blocks(variants)]
        calibrated += [text for text in good if text]
        fused += [text for text in beside if text]
        if any(good) and any(beside):
            return Verdict("right", f"Measured: {[t for t in good if t][0]}; {[t for t in beside if t][0]}.")
    missing = []
    if not calibrated:
        missing.append("a setting where the calibrated classifier is clearly better than one without calibration")
    if not fused:
        missing.append("Blocks = 1 and Blocks = 2 under one setting, both calibrated")
    if calibrated and fused:
        missing.append("both comparisons under the same setting")
    return _still(missing, [*calibrated, *fused, *short])


def _by_head(variants: Mapping[tuple[int, str], Accuracies]) -> list[tuple[int, Accuracies, Accuracies]]:
    """(K, calibrated, not calibrated) pairs."""
    return [
        (k, with_, variants[k, head])
        for (k, name), with_ in variants.items()
        for head in ("average", "own")
        if name == "ccvr" and (k, head) in variants
    ]


def _by_blocks(variants: Mapping[tuple[int, str], Accuracies]) -> list[tuple[int, Accuracies, Accuracies]]:
    """(K, fused, not fused) pairs, both calibrated."""
    alone = variants.get((1, "ccvr"))
    if alone is None:
        return []
    return [(k, values, alone) for (k, head), values in variants.items() if head == "ccvr" and k > 1]


def hurt_by_cues(outcomes: Sequence[Any]) -> Verdict:
    """Right where the ensemble is clearly worse with cue clients than without, all else equal; FuseFL is told."""

    def place(outcome: Any) -> tuple[str, tuple[str, str]]:
        rest = {name: value for name, value in outcome.setting.items() if name not in ("seed", "spurious", "options")}
        return json.dumps(rest, sort_keys=True), (outcome.method, outcome.setting.get("spurious", ""))

    found, short = [], []
    for variants in grouped(outcomes, ("ensemble", "fusefl"), place).values():
        without = variants.get(("ensemble", ""))
        for (method, cues), accuracies in variants.items():
            if method != "ensemble" or not cues or without is None:
                continue
            text = _clear(without, accuracies, f"with the cue at clients {cues} the ensemble loses", short)
            if text:
                found.append(text + _beside(variants, cues))
    if found:
        return Verdict("right", f"Supported by your runs: {found[0]}.")
    wanted = "runs of the ensemble with and without cue clients, all else equal, with a clear difference"
    return _still([wanted], short)


def _beside(variants: Mapping[tuple[str, str], Accuracies], cues: str) -> str:
    """What FuseFL loses under the same two settings."""
    without, with_ = variants.get(("fusefl", "")), variants.get(("fusefl", cues))
    if without is None or with_ is None or len(set(without) & set(with_)) < ENOUGH:
        return ""
    difference, wide = gap(without, with_)
    noise = ", within the noise" if is_noise(difference, wide) else ""
    return f", FuseFL {100 * difference:.0f} ± {100 * wide:.0f} points{noise}"


def grouped(outcomes: Sequence[Any], methods: Sequence[str], place: Callable) -> dict[str, dict[Any, dict[int, float]]]:
    """{setting: {variant: {seed: accuracy}}}, a repeated seed once; `place(outcome)` gives (setting, variant)."""
    found: dict[str, dict[Any, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for outcome in outcomes:
        if outcome.method in methods:
            setting, variant = place(outcome)
            found[setting][variant][outcome.setting["seed"]] = outcome.accuracy
    return found


def _measured(a: Accuracies, b: Accuracies, words: str, short: list[str]) -> str:
    """'words +3 ± 1 points' where there are enough seeds; else nothing, and a note in `short`."""
    common = set(a) & set(b)
    if len(common) < ENOUGH:
        short.append(f"{words} cannot be told from {plural(len(common), 'seed')}")
        return ""
    difference, wide = gap(a, b)
    noise = ", within the noise" if is_noise(difference, wide) else ""
    return f"{words} {signed(difference)} ± {100 * wide:.0f} points{noise}"


def _clear(a: Accuracies, b: Accuracies, words: str, short: list[str]) -> str:
    """The same where a is clearly better than b."""
    text = _measured(a, b, words, short)
    if not text:
        return ""
    difference, wide = gap(a, b)
    if difference > 0 and not is_noise(difference, wide):
        return text.replace("+", "")
    short.append(text)
    return ""


def _still(missing: Sequence[str], seen: Sequence[str]) -> Verdict:
    record = "; ".join(seen) or "nothing that can be compared"
    return Verdict(
        "wrong", f"Still to find, with {ENOUGH} seeds or more: {' and '.join(missing)}. Your record: {record}."
    )
