"""A model as ONNX, for programs that have no PyTorch: `out.save("model.onnx")`. Needs `pip install 'fedlab-nb[onnx]'`.

The graph has one input `x`, float32 `[samples, ...]`, prepared as the data set's own, and one output, the `scores`
`[samples, C]` that the model's `logits` gives; their greatest is the class. How many samples it reads at once is free.
PyTorch's exporter writes it (packages onnx and onnxscript, 11 MB), and its scores of a few random samples are compared
with the model's. What the model was made from stands in the file's metadata, under "fedlab_nb". ONNX files are for use
elsewhere: `load_model` reads safetensors alone.
"""

from __future__ import annotations

import json
import logging
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import RunError, demand, reason
from ..methods import GlobalModel

MOST = 64  # samples that every model reads in one piece (`training.evaluate`), so that the graph has no pieces


class Scorer(nn.Module):
    """`logits` of a global model as a module; the model is no part of it, so that its numbers are constants."""

    def __init__(self, model: GlobalModel) -> None:
        super().__init__()
        self._scores = model.logits

    def forward(self, x: Tensor) -> Tensor:
        return self._scores(x)


def save(model: GlobalModel, input_shape: tuple[int, ...], about: Any, path: Path) -> Path:
    """Write `model`, which this uses up (what it remembers is of no use afterwards). UsageError without the packages,
    RunError for a model that has no such form, or where there is no room or permission."""
    there = find_spec("onnx") and find_spec("onnxscript")
    how = "type pip install 'fedlab-nb[onnx]', or save it as .safetensors"
    demand(there, f"{path} needs the packages onnx and onnxscript; {how}.")
    free = ({0: torch.export.Dim("samples", min=1, max=MOST)},)
    names: Any = {"input_names": ["x"], "output_names": ["scores"], "dynamic_shapes": free}
    names |= {"dynamo": True, "verbose": False}
    import onnx.reference

    log = logging.getLogger("torch.onnx")
    before = log.level
    try:
        log.setLevel(logging.ERROR)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            example = (torch.zeros(3, *input_shape),)
            made: Any = torch.onnx.export(Scorer(model), example, **names)
        for count in (2, 5):  # a part that the exporter cannot follow would be the example's, as a constant
            x = torch.rand(count, *input_shape, generator=torch.Generator().manual_seed(0))
            scores: Any
            (scores,) = onnx.reference.ReferenceEvaluator(made.model_proto).run(None, {"x": x.numpy()})
            np.testing.assert_allclose(scores, model.logits(x), rtol=1e-3, atol=1e-3)
        made.model.metadata_props["fedlab_nb"] = json.dumps(about)
        made.save(path)
    except Exception as error:  # whatever a layer, or a full disk, provokes in the exporter
        what = f"The model could not be written to {path}: {reason(error)}"
        raise RunError(f"{what}; save it as .safetensors.") from None
    finally:
        log.setLevel(before)
    return path
