"""FuseFL's lab: fusion against calibration, and linear probes by layer."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from typing import Any

from ...data import load
from ...draw import Picture
from ...draw.fusefl_halves import halves
from ...draw.fusefl_probes import probes
from ...errors import UsageError
from ...methods.parts.blocks import cut
from ...methods.parts.probes import fused_outputs, layer_outputs, linear_probe
from ...study import job
from ..lab_view import LabView, Look
from .fusefl_run import alone, run_of, settings_of, where

MOST_CLIENTS, MOST_TRAIN, MOST_TEST = 10, 2000, 1000


class Halves(LabView):
    """The same run with and without fusion, under each classifier."""

    name, title, ready = "halves", "Fusion × calibration", "run"
    empty = "Press Run, then the button: the same clients without fusion, and each way of making the classifier."
    work_label = "Run without fusion"

    def work(self, look: Look) -> Generator[tuple[int, int, str], None, dict[str, Any]]:
        """Run the same federation unfused (K = 1) and calibrated, on the same seeds; earlier runs are remembered."""
        run, own = run_of(look), options(look)["blocks"]
        wanted = [1 if own > 1 else 2] + [own] * (options(look)["head"] != "ccvr")
        seeds = sorted(look.outcomes)
        found: dict[int, dict[str, dict[int, float]]] = {}
        for i, (blocks, seed) in enumerate(itertools.product(wanted, seeds)):
            changed = {**run, "seed": seed, "fusefl.blocks": blocks, "fusefl.head": "ccvr"}
            for event in job("fusefl", **changed):
                if event.error is not None:
                    raise event.error
                share = event.done / max(event.total, 1)
                yield i * 100 + int(100 * share), 100 * len(wanted) * len(seeds), f"K = {blocks}, seed {seed}"
                if event.outcome is not None:
                    add(found.setdefault(blocks, {}), seed, event.outcome)
        return {"number": look.number, "found": found}

    def draw(self, look: Look) -> Picture:
        own = options(look)["blocks"]
        found: dict[int, dict[str, dict[int, float]]] = {own: {}}
        for seed, outcome in look.outcomes.items():
            add(found[own], seed, outcome)
        if look.worked and look.worked["number"] == look.number:
            found |= look.worked["found"]
        blocks = next((k for k in found if k > 1), 2)
        ensemble = {s: o.accuracy for s, o in look.others.get("ensemble", {}).items() if s in look.outcomes}
        return halves(
            found.get(blocks, {}), found.get(1, {}), blocks=blocks, setting=look.setting, ensemble=ensemble or None,
            chance=1 / len(look.class_names),
        )  # fmt: skip


def options(look: Look) -> dict[str, Any]:
    """The method's hyper-parameters in the present run."""
    return look.outcome.setting["options"]


def add(table: dict[str, dict[int, float]], seed: int, outcome: Any) -> None:
    """Put an outcome's accuracy under each classifier into `table`."""
    for head, value in outcome.extras["heads"].items():
        table.setdefault(head, {})[seed] = value


class Probes(LabView):
    """What a linear classifier can read off every layer, of clients alone and fused."""

    name, title, ready = "probes", "Probes by layer", "run"
    empty = "Press Run: linear probes show at which layer the clients' features fall apart."

    def prepare(self, look: Look) -> Generator[None, None, dict[str, Any]]:
        settings, outcome = settings_of(look), look.outcome
        data, device = load(settings.dataset), outcome.setting["device"]
        sets = (data.x_train[:MOST_TRAIN], data.y_train[:MOST_TRAIN], data.x_test[:MOST_TEST], data.y_test[:MOST_TEST])
        x, y, x_test, y_test = (part.to(device) for part in sets)
        _, networks = alone(look)
        rows = []
        for network in networks[:MOST_CLIENTS]:
            rows.append([])
            for train, test in zip(layer_outputs(network, x), layer_outputs(network, x_test), strict=True):
                rows[-1].append(linear_probe(train, y, test, y_test))
                yield
        fused, joint = outcome.model.module, []
        try:
            pairs = list(zip(fused_outputs(fused, x), fused_outputs(fused, x_test), strict=True))
        except RuntimeError as error:
            raise UsageError(
                "The clients' networks differ in shape, so their features have no mean to probe."
            ) from error
        for train, test in pairs:
            joint.append(linear_probe(train, y, test, y_test))
            yield
        places = list(itertools.accumulate(len(block) for block in cut(networks[0], options(look)["blocks"])))
        return {
            "alone": rows, "fused": joint, "places": places, "setting": where(look),
            "all": len(networks) <= MOST_CLIENTS, "samples": len(y),
        }  # fmt: skip

    def draw(self, look: Look) -> Picture:
        kept = look.prepared
        few = "" if kept["all"] else f" of the first {MOST_CLIENTS} clients"
        note = f"Probes{few} train on {kept['samples']} samples of all clients, which nobody in a federation could do."
        return probes(
            kept["alone"], kept["fused"], kept["places"], setting=kept["setting"], client=look.client, note=note
        )
