"""A model as a file: what predicts, the settings that it comes from and how good it was. `Outcome.save` writes it.

    out.save("model.safetensors")
    model = fl.load_model("model.safetensors")
    model.predict(x), model.about["alpha"]

The file is one of safetensors: tensors by their place in the model ("module.body.0.1.weight"), and a text in JSON that
says what they are parts of. A class in it is a name in `classes()`, of what this process knows already: nothing is
imported or executed, and there is no pickle. Tensors keep their type and the order of their axes in memory, so that the
loaded model predicts the same to the last digit on the same machine and device. Only what predicts is kept: not the
report, nor what clients sent beside it. A digest of text and tensors tells a damaged file.

`out.save("model.onnx")` writes the other form, for programs that have no PyTorch. Needs `pip install
'fedlab-nb[onnx]'`. The graph has one input `x`, float32 `[samples, ...]`, prepared as the data set's own, and one
output, the `scores` `[samples, C]` that the model's `logits` gives; their greatest is the class. How many samples it
reads at once is free. PyTorch's exporter writes it (packages onnx and onnxscript, 11 MB), and its scores of a few
random samples are compared with the model's. What the model was made from stands in the file's metadata, under
"fedlab_nb". `load_model` reads safetensors alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import RunError, UsageError, demand, reason
from ..methods import GlobalModel
from ..methods.fens.model import Experts
from ..methods.gauss import Scores
from ..methods.parts.frozen import Frozen
from ..training import ClientModels
from .store import made

FORMAT = 1
NAME, DIGEST = "fedlab_nb model", "sha256"  # the header's entries: "FORMAT JSON", and the digest
MOST = 64  # samples that every model reads in one piece (`training.evaluate`), so that the graph has no pieces
MODULE = frozenset(vars(nn.Module()))  # what every layer has


class Predictor:
    """What has a global `model` on a `device`, and answers for samples."""

    model: Any
    device: str

    def _samples(self, x: Any) -> Tensor:
        x = torch.as_tensor(np.asarray(x) if not isinstance(x, Tensor) else x)
        return x.to(self.device, torch.float32)

    def predict(self, x: Any) -> np.ndarray:
        """Classes `[N]` of samples `x [N, ...]` (prepared as the data set's own: see `fedlab_nb.data.load`)."""
        return self.model.predict(self._samples(x)).cpu().numpy()

    def features(self, x: Any) -> np.ndarray:
        """Feature vectors `[N, D]` that the last linear map reads (for ensembles: the concatenated logits)."""
        return self.model.features(self._samples(x)).cpu().numpy()


@dataclasses.dataclass(frozen=True, eq=False)
class SavedModel(Predictor):
    """A model from a file. `about`: method, settings, recipe, options, what it was made with, and its result."""

    model: GlobalModel
    about: Mapping[str, Any]
    device: str = "cpu"

    def __repr__(self) -> str:
        about = self.about
        return f"SavedModel({about['method']!r}, {about['dataset']!r}, accuracy {about['result']['accuracy']:.1%})"


# ---------------------------------------------------------------------------------------------------- what a file names
def subclasses(base: type) -> Iterator[type]:
    yield base
    known: type
    for known in base.__subclasses__():
        yield from subclasses(known)


def classes() -> dict[str, type]:
    """Name -> class, for all that a file can hold: global models and what they are made of, and PyTorch's layers."""
    layers = [
        cls
        for cls in subclasses(nn.Module)
        if cls.__module__.startswith(("torch.nn.modules.", "fedlab_nb."))
    ]
    models = (*layers, *subclasses(GlobalModel), ClientModels, Experts, Frozen, Scores)
    known = {cls.__name__: cls for cls in models}
    for former, name in FORMER_NAMES.items():
        known[former] = known[name]
    return known


# Classes that were renamed: {the name in older files: the name now}.
FORMER_NAMES = {"Represented": "CommonHeadNetwork"}


def parts_of(cls: type) -> tuple[type, tuple[str, ...]]:
    """The class that a model of `cls` becomes in a file, and the attributes that it is made from; none of a layer."""
    if dataclasses.is_dataclass(cls):
        return cls, tuple(field.name for field in dataclasses.fields(cls))
    return next(
        ((base, vars(base)["parts"]) for base in cls.__mro__ if vars(base).get("parts")), (cls, ())
    )


# -------------------------------------------------------------------------------------------------- objects and tensors
def packed(value: Any, tensors: dict[str, Tensor], place: str = "") -> Any:
    """`value` as JSON has it, its tensors put into `tensors` by their place. UsageError for what cannot be kept."""

    def inner(name: object, part: Any) -> Any:
        return packed(part, tensors, f"{place}.{name}" if place else str(name))

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        axes = sorted(
            range(value.dim()), key=lambda axis: -value.stride()[axis]
        )  # as they lie in memory
        tensors[place] = value.detach().cpu().permute(axes).contiguous().clone()
        return {"tensor": place, "axes": axes}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [inner(i, part) for i, part in enumerate(value)]}
    cls, names = parts_of(type(value))
    demand(
        classes().get(cls.__name__) is cls,
        f"A {cls.__name__} cannot be saved; it is no part of fedlab_nb's models.",
    )
    if names:
        return {
            "is": cls.__name__,
            "of": {name: inner(name, getattr(value, name)) for name in names},
        }
    demand(
        isinstance(value, nn.Module),
        f"A {cls.__name__} names no parts, so that it cannot be saved.",
    )
    own = {name: inner(name, part) for name, part in vars(value).items() if name not in MODULE}
    held = {
        kind: {name: inner(name, part) for name, part in getattr(value, kind).items()}
        for kind in HELD
    }
    return {"layer": cls.__name__, "of": own, **held}


HELD = ("_parameters", "_buffers", "_modules")


def unpacked(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """What `packed` was given. Any exception for what it has not made."""
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        stored, axes = tensors[value["tensor"]], value["axes"]
        return stored.permute([axes.index(axis) for axis in range(len(axes))])

    def each(parts: dict) -> dict[str, Any]:
        return {name: unpacked(part, tensors) for name, part in parts.items()}

    for kind in (list, tuple):
        if kind.__name__ in value:
            return kind(unpacked(part, tensors) for part in value[kind.__name__])
    if "is" in value:
        whole = classes()[value["is"]](**each(value["of"]))
        return whole.eval() if isinstance(whole, nn.Module) else whole
    layer: Any = classes()[value["layer"]]
    layer = layer.__new__(layer)
    nn.Module.__init__(layer)
    vars(layer).update(each(value["of"]))
    for name, part in each(value["_parameters"]).items():
        layer.register_parameter(
            name, None if part is None else nn.Parameter(part, requires_grad=False)
        )
    for name, part in each(value["_buffers"]).items():
        layer.register_buffer(name, part)
    for name, part in each(value["_modules"]).items():
        layer.add_module(name, part)
    return layer.eval()


# ------------------------------------------------------------------------------------------------------------- the file
def digest(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Of the text, and of names, types, shapes and numbers of the tensors."""
    total = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else b"")
    return total.hexdigest()


def about(outcome: Any) -> dict[str, Any]:
    """Where a model comes from: what was run, on which data, what came out, and what it was made with."""
    result = {name: value for name, value in outcome.to_json().items() if name != "extras"}
    described = outcome.settings.describe()
    data = {
        "digest": outcome.plan.digest,
        "input_shape": list(described.input_shape),
        "classes": described.classes,
    }
    return {**outcome.about(), "data": data, "result": result, "made": made()}


def save(outcome: Any, path: str | PathLike) -> Path:
    """Write the outcome's model with all that `about` says. UsageError for another ending, RunError where there is no
    room or permission."""
    from safetensors.torch import save_file

    path = Path(path)
    forms = f"{str(path)!r} must end in .safetensors, which load_model reads, or in .onnx for other programs"
    demand(path.suffix in (".safetensors", ".onnx"), f"{forms}.")
    tensors: dict[str, Tensor] = {}
    content = {"model": packed(outcome.model, tensors), "about": about(outcome)}
    if path.suffix == ".onnx":
        copy = unpacked(json.loads(json.dumps(content["model"])), tensors)
        return save_onnx(copy, outcome.settings.describe().input_shape, content["about"], path)
    text = json.dumps(content)
    try:
        save_file(tensors, path, {NAME: f"{FORMAT} {text}", DIGEST: digest(text, tensors)})
    except (
        Exception
    ) as error:  # safetensors has its own, for a folder that is not there as for a full disk
        raise RunError(f"The model could not be written to {path}: {reason(error)}.") from None
    return path


class Scorer(nn.Module):
    """`logits` of a global model as a module; the model is no part of it, so that its numbers are constants."""

    def __init__(self, model: GlobalModel) -> None:
        super().__init__()
        self._scores = model.logits

    def forward(self, x: Tensor) -> Tensor:
        return self._scores(x)


def save_onnx(model: GlobalModel, input_shape: tuple[int, ...], about: Any, path: Path) -> Path:
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
        for count in (
            2,
            5,
        ):  # a part that the exporter cannot follow would be the example's, as a constant
            x = torch.rand(count, *input_shape, generator=torch.Generator().manual_seed(0))
            scores: Any
            (scores,) = onnx.reference.ReferenceEvaluator(made.model_proto).run(
                None, {"x": x.numpy()}
            )
            np.testing.assert_allclose(scores, model.logits(x), rtol=1e-3, atol=1e-3)
        made.model.metadata_props["fedlab_nb"] = json.dumps(about)
        made.save(path)
    except Exception as error:  # whatever a layer, or a full disk, provokes in the exporter
        what = f"The model could not be written to {path}: {reason(error)}"
        raise RunError(f"{what}; save it as .safetensors.") from None
    finally:
        log.setLevel(before)
    return path


def load_model(path: str | PathLike, device: str = "cpu") -> SavedModel:
    """The model that `Outcome.save` wrote. It predicts as the saved one did. UsageError for a file that is damaged,
    foreign, or of a newer version."""
    from safetensors import safe_open

    demand(
        Path(path).is_file(),
        f"There is no file {path}; give the path of a model that Outcome.save wrote.",
    )
    try:
        with safe_open(path, "pt", device) as file:
            head = file.metadata() or {}
            tensors = {
                name: file.get_tensor(name).clone() for name in file.keys()
            }  # cloned: aligned as any other
    except Exception as error:  # whatever a foreign file provokes
        raise UsageError(
            f"{path} is damaged, or no safetensors file ({reason(error)}); save the model again."
        ) from None
    number, _, text = head.get(NAME, "").partition(" ")
    demand(
        number.isdecimal(), f"{path} is no model of fedlab_nb; give a file that Outcome.save wrote."
    )
    new = f"{path} was saved by a newer fedlab_nb (form {number}, and this one knows {FORMAT}); update the package."
    demand(int(number) <= FORMAT, new)
    whole = digest(text, {name: tensor.cpu() for name, tensor in tensors.items()}) == head.get(
        DIGEST
    )
    demand(whole, f"{path} is damaged: its content is not what was saved; save the model again.")
    try:
        content = json.loads(text)
        return SavedModel(unpacked(content["model"], tensors), content["about"], device)
    except Exception as error:
        advice = "a layer or a class in it is not known here; import the code that defines it first"
        raise UsageError(
            f"The model in {path} cannot be made ({reason(error)}): {advice}."
        ) from None
