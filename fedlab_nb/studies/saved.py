"""A model as a file: what predicts, the settings that it comes from and how good it was. `Outcome.save` writes it.

    out.save("model.safetensors")
    model = fl.load_model("model.safetensors")
    model.predict("new_rows.csv")             # a DataFrame: label, and a probability a class
    model.predict(x), model.about["alpha"]    # of prepared tensors the classes alone

The file is one of safetensors: tensors by their place in the model ("module.body.0.1.weight"), and a text in JSON that
says what they are parts of. A class in it is a name in `known_classes()`, of what this process knows: nothing is
imported or executed, and there is no pickle. Layers of a person's own are known once `add_model` knows their network.
Tensors keep their type and the order of their axes in memory, so that the loaded model predicts the same to the last
digit on the same machine and device. Only what predicts is kept: not the report, nor what clients sent beside it. A
digest of text and tensors tells a damaged file.

`out.save("model.onnx")` writes the other form, for programs that have no PyTorch. It needs the optional dependencies
`onnx`. The graph has one input `x`, float32 `[samples, ...]`, prepared as the data set's own, and one output, the
`scores` `[samples, C]` that the model's `logits` gives; their greatest is the class. How many samples it reads at once
is free. PyTorch's exporter writes it (packages onnx and onnxscript, 11 MB), and its scores of a few random samples are
compared with the model's. What the model was made from stands in the file's metadata, under "fedlab_nb", with
what its inputs are made from ("inputs"). `load_model` reads safetensors alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from math import prod
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import RunError, UsageError, format_error
from ..files import check_replaceable, expand_path, open_replacement
from ..installation import format_install_command
from ..methods import GlobalModel
from ..methods.fens.model import Experts
from ..methods.gauss import Scores
from ..methods.parts.frozen import Frozen
from ..models import build, is_own_model, parse_architecture
from ..torch_switches import use_default_switches
from ..training import ClientModels
from ..training.calibration import SCORES
from .inputs import Inputs, find_picture_files
from .settings import Plan, resolve_device
from .store import StoreWarning, read_package_versions

if TYPE_CHECKING:
    from pandas import DataFrame

    from .outcome import Outcome

FORMAT = 1
# The header's entries: "FORMAT JSON", and the digest.
NAME = "fedlab_nb model"
DIGEST = "sha256"
LABEL = "label"  # the first column of answers
OWN = "own."  # begins the names of layers that are a person's own
# Samples that every model reads in one chunk (`training.evaluate`), so that the graph of an exported one has no chunks.
MOST_EXPORTED_SAMPLES = 64
# What every layer has, whatever it is.
MODULE_ATTRIBUTES = frozenset(vars(nn.Module()))
# Where a layer has its tensors and its own layers.
MODULE_PARTS = ("_parameters", "_buffers", "_modules")


class Predictor:
    """What has a global `model` on a `device`, and answers for samples."""

    model: Any
    device: str
    inputs: Inputs | None

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of a prepared sample: (C, H, W), (C, T) or (D,)."""
        raise NotImplementedError

    def _prepare_samples(self, x: Any) -> Tensor:
        """Prepared samples as the model reads them; flattened ones, and grey images without the axis of their channel,
        get their shape back. UsageError for other shapes."""
        if not isinstance(x, Tensor):
            x = torch.as_tensor(np.asarray(x))
        is_flat = x.ndim == 2 and x.shape[1] == prod(self.input_shape)
        if is_flat or (1, *x.shape[1:]) == self.input_shape:
            x = x.reshape(len(x), *self.input_shape)
        if tuple(x.shape[1:]) != self.input_shape:
            wanted = ", ".join(str(length) for length in self.input_shape)
            raise UsageError(
                f"The samples have shape {tuple(x.shape)}, but this model reads [N, {wanted}]; prepare them as "
                "fl.load(...).x_test is, or give raw rows."
            )
        return x.to(self.device, torch.float32)

    @use_default_switches()
    @torch.no_grad()
    def predict(self, rows: Any) -> Any:
        """What `rows` are taken for.

        rows: raw rows, as they are in your file: a DataFrame, the path of a file, a dict or a list of dicts, an array
        in the numbers of the training arrays, or pictures (files, or a folder of some). Columns are found by name:
        their order is free, surplus ones are left aside. Returns a DataFrame with a row for each: `label`, the class's
        name, and a column for each class with its probability; where the method has no probabilities, its scores, in
        columns called "NAME (score)".
        A tensor is taken as prepared (`fl.load(...).x_test`); its classes come back as whole numbers `[N]`. So is an
        array where the data set has no raw rows, as those of the package.

        Raises UsageError, in one sentence, for a missing column, a cell that cannot be read, an unknown category, other
        shapes or ranges, and for a model that does not know how raw rows become its inputs.
        """
        if isinstance(rows, Tensor) or (self._takes_prepared_arrays() and is_array(rows)):
            return self.model.predict(self._prepare_samples(rows)).cpu().numpy()
        if self.inputs is None:
            raise UsageError(
                "This model was saved by an older fedlab_nb, which kept nothing of how raw rows become what the model "
                "reads; save it again, or give a tensor that is prepared as the data set's own."
            )
        rows = find_picture_files(rows)
        x = self.inputs.encode(rows).to(self.device)
        return make_answer_table(self.model, x, self.inputs, rows)

    def _takes_prepared_arrays(self) -> bool:
        """Whether an array can be nothing but samples that are prepared."""
        return self.inputs is None or self.inputs.schema is None or self.inputs.is_bundled

    @use_default_switches()
    @torch.no_grad()
    def features(self, x: Any) -> np.ndarray:
        """Feature vectors `[N, D]` that the last linear map reads (for ensembles: the concatenated logits)."""
        return self.model.features(self._prepare_samples(x)).cpu().numpy()


def is_array(rows: Any) -> bool:
    """Whether `rows` are numbers alone: an array, or lists of numbers."""
    if not isinstance(rows, np.ndarray | list | tuple):
        return False
    return np.asarray(rows).dtype.kind in "biuf"


def make_answer_table(model: GlobalModel, x: Tensor, inputs: Inputs, rows: Any) -> DataFrame:
    """The answers of `model` for prepared samples `x [N, ...]`, with the names of the classes."""
    import pandas

    scores = model.logits(x).double().cpu()
    has_probabilities = bool(SCORES[model.score_kind])
    values = scores.softmax(1) if has_probabilities else scores
    ending = "" if has_probabilities else " (score)"
    columns = [f"{name}{ending}" for name in inputs.class_names]
    answers = pandas.DataFrame(values.numpy(), columns=columns)
    answers = answers.rename(columns={LABEL: f"{LABEL} (class)"})  # the first column is called so
    answers.insert(0, LABEL, [inputs.class_names[c] for c in model.predict(x).tolist()])
    if isinstance(rows, pandas.DataFrame):
        answers.index = rows.index
    elif is_list_of_files(rows):
        answers.index = pandas.Index([str(row) for row in rows], name="file")
    return answers


def is_list_of_files(rows: Any) -> bool:
    """Whether `rows` are paths, and nothing else."""
    return isinstance(rows, list | tuple) and all(isinstance(row, str | PathLike) for row in rows)


@dataclasses.dataclass(frozen=True, eq=False)
class SavedModel(Predictor):
    """A model from a file. `about`: method, settings, recipe, options, what it was made with, and its result.
    `inputs`: how raw rows become what it reads, and what its classes are called; None in a file of an older version."""

    model: GlobalModel
    about: Mapping[str, Any]
    device: str = "cpu"
    inputs: Inputs | None = None

    @property
    def input_shape(self) -> tuple[int, ...]:
        return tuple(self.about["data"]["input_shape"])

    def __repr__(self) -> str:
        method = self.about["method"]
        dataset = self.about["dataset"]
        accuracy = self.about["result"]["accuracy"]
        return f"SavedModel({method!r}, {dataset!r}, accuracy {accuracy:.1%})"


# ---------------------------------------------------------------------------------------------------- what a file names
def walk_subclasses(base: type) -> Iterator[type]:
    """`base`, and all classes below it that this process knows."""
    yield base
    subclass: type
    for subclass in base.__subclasses__():
        yield from walk_subclasses(subclass)


def find_loadable_classes() -> dict[str, type]:
    """Name -> class, for all that a file can hold: global models and what they are made of, and PyTorch's layers."""
    classes: list[type] = []
    for cls in walk_subclasses(nn.Module):
        if cls.__module__.startswith(("torch.nn.modules.", "fedlab_nb.")):
            classes.append(cls)
    classes += walk_subclasses(GlobalModel)
    classes += [ClientModels, Experts, Frozen, Scores]
    classes_by_name = {cls.__name__: cls for cls in classes}
    for former, name in FORMER_NAMES.items():
        classes_by_name[former] = classes_by_name[name]
    return classes_by_name


# Classes that were renamed: {the name in older files: the name now}.
FORMER_NAMES = {"Represented": "CommonHeadNetwork"}


def find_own_architectures(plan: Plan) -> list[tuple]:
    """(name, input_shape, classes, width) of those networks of a run that a person has added with `add_model`."""
    architectures = set(plan.architectures)
    options = dataclasses.asdict(plan.method)  # type: ignore[call-overload]
    for knob in plan.method.fields():
        text = options[knob.name]
        if knob.model and text != "auto":
            _, shape, classes, _ = plan.architectures[0]
            architectures.add(parse_architecture(text, shape, classes))
    own = [architecture for architecture in architectures if is_own_model(architecture[0])]
    return sorted(own, key=str)


def find_own_layers(architectures: Iterable[Sequence]) -> dict[str, type]:
    """Name -> class, for the layers of such networks that are a person's own; they are built once, to see them.
    UsageError where this process does not know a network."""
    own_layers = {}
    for name, shape, count, width in architectures:
        if not is_own_model(name):
            raise UsageError(
                f"it has the network {name!r}, which is not of this package; call fl.add_model({name!r}, ...) first, "
                "with the code that it was trained with"
            )
        network = build(name, tuple(shape), count, width=width)
        known = find_loadable_classes()
        for layer in network.modules():
            cls = type(layer)
            if known.get(cls.__name__) is not cls:
                own_layers[f"{OWN}{cls.__name__}"] = cls
    return own_layers


def find_saved_attributes(cls: type) -> tuple[type, tuple[str, ...]]:
    """The class that a model of `cls` becomes in a file, and the attributes that it is made from; none of a layer."""
    if dataclasses.is_dataclass(cls):
        return cls, tuple(field.name for field in dataclasses.fields(cls))
    for base in cls.__mro__:
        if vars(base).get("parts"):
            return base, vars(base)["parts"]
    return cls, ()


# -------------------------------------------------------------------------------------------------- objects and tensors
def pack_value(
    value: Any,
    tensors: dict[str, Tensor],
    place: str = "",
    own_layers: Mapping[str, type] = MappingProxyType({}),
) -> Any:
    """`value` as JSON has it, its tensors put into `tensors` by their place in the model.

    own_layers: layers that are a person's, by name. UsageError for what cannot be kept.
    """

    def pack_part(name: object, part: Any) -> Any:
        return pack_value(part, tensors, f"{place}.{name}" if place else str(name), own_layers)

    def pack_parts(parts: Mapping[str, Any]) -> dict[str, Any]:
        return {name: pack_part(name, part) for name, part in parts.items()}

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        strides = value.stride()
        axes = sorted(range(value.dim()), key=lambda axis: -strides[axis])  # as they lie in memory
        tensors[place] = value.detach().cpu().permute(axes).contiguous().clone()
        return {"tensor": place, "axes": axes}
    if isinstance(value, list | tuple):
        items = [pack_part(i, item) for i, item in enumerate(value)]
        return {type(value).__name__: items}
    cls, attributes = find_saved_attributes(type(value))
    name = name_class(cls, own_layers, place)
    if attributes:
        parts = {attribute: getattr(value, attribute) for attribute in attributes}
        return {"is": name, "of": pack_parts(parts)}
    if not isinstance(value, nn.Module):
        raise UsageError(f"A {cls.__name__} names no parts, so that it cannot be saved.")
    other_attributes = {
        key: part for key, part in vars(value).items() if key not in MODULE_ATTRIBUTES
    }
    packed: dict[str, Any] = {"layer": name, "of": pack_parts(other_attributes)}
    for kind in MODULE_PARTS:
        packed[kind] = pack_parts(getattr(value, kind))
    return packed


def name_class(cls: type, own_layers: Mapping[str, type], place: str) -> str:
    """What a class is called in a file; UsageError for one that nobody would find again."""
    name = cls.__name__
    if own_layers.get(f"{OWN}{name}") is cls:
        return f"{OWN}{name}"
    if find_loadable_classes().get(name) is not cls:
        raise UsageError(
            f"A {name} cannot be saved (in {place or 'the model'}): it is no part of fedlab_nb's models, nor a layer "
            "of a network that fl.add_model knows; of functions in a layer of your own make layers, such as nn.ReLU()."
        )
    return name


def unpack_value(
    value: Any,
    tensors: Mapping[str, Tensor],
    own_layers: Mapping[str, type] = MappingProxyType({}),
) -> Any:
    """What `pack_value` was given. Any exception for what it has not made."""
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        axes = value["axes"]
        return tensors[value["tensor"]].permute([axes.index(axis) for axis in range(len(axes))])

    def unpack_parts(parts: dict) -> dict[str, Any]:
        return {name: unpack_value(part, tensors, own_layers) for name, part in parts.items()}

    for kind in (list, tuple):
        if kind.__name__ in value:
            return kind(unpack_value(item, tensors, own_layers) for item in value[kind.__name__])
    if "is" in value:
        model = find_loadable_classes()[value["is"]](**unpack_parts(value["of"]))
        return model.eval() if isinstance(model, nn.Module) else model
    return make_layer(
        {**find_loadable_classes(), **own_layers}[value["layer"]],
        attributes=unpack_parts(value["of"]),
        parameters=unpack_parts(value["_parameters"]),
        buffers=unpack_parts(value["_buffers"]),
        children=unpack_parts(value["_modules"]),
    )


def make_layer(
    cls: type[nn.Module],
    attributes: Mapping[str, Any],
    parameters: Mapping[str, Tensor | None],
    buffers: Mapping[str, Tensor | None],
    children: Mapping[str, nn.Module],
) -> nn.Module:
    """A layer of a class with these contents, in eval mode; its `__init__` is not called."""
    layer = cls.__new__(cls)
    nn.Module.__init__(layer)
    vars(layer).update(attributes)
    for name, tensor in parameters.items():
        parameter = None if tensor is None else nn.Parameter(tensor, requires_grad=False)
        layer.register_parameter(name, parameter)
    for name, tensor in buffers.items():
        layer.register_buffer(name, tensor)
    for name, child in children.items():
        layer.add_module(name, child)
    return layer.eval()


# ------------------------------------------------------------------------------------------------------------- the file
def compute_digest(text: str, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of the text, and of names, types, shapes and numbers of the tensors."""
    total = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        if tensor.numel():
            total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def describe_outcome(outcome: Outcome) -> dict[str, Any]:
    """Where a model comes from: what was run, on which data, what came out, and what it was made with."""
    result = outcome.to_json()
    del result["extras"]
    dataset = outcome.settings.describe()
    data = {
        "digest": outcome.plan.digest,
        "input_shape": list(dataset.input_shape),
        "classes": dataset.classes,
    }
    return {**outcome.about(), "data": data, "result": result, "made": read_package_versions()}


def check_target_path(path: str | PathLike, *, force: bool = False) -> Path:
    """`path` with `~` replaced, if a model can be saved there; else UsageError: another ending, or somebody else's file
    (unless `force`)."""
    place = expand_path(path)
    if place.suffix not in (".safetensors", ".onnx"):
        raise UsageError(
            f"{str(path)!r} must end in .safetensors, which load_model reads, or in .onnx for other programs."
        )
    check_replaceable([place], force=force)
    return place


@use_default_switches()
def save(outcome: Outcome, path: str | PathLike, *, force: bool = False) -> Path:
    """Write the outcome's model with all that `describe_outcome` says. UsageError for another ending, or where a file
    of somebody else's is there already (unless `force`); RunError where there is no room or permission."""
    from safetensors.torch import save_file

    path = check_target_path(path, force=force)
    tensors: dict[str, Tensor] = {}
    try:
        inputs = outcome.inputs.to_json()
    except UsageError as error:  # the model is worth more than its columns
        warnings.warn(f"The saved model reads no raw rows: {error}", StoreWarning, stacklevel=5)
        inputs = None
    networks = find_own_architectures(outcome.plan)
    own_layers = find_own_layers(networks)
    content = {
        "model": pack_value(outcome.model, tensors, own_layers=own_layers),
        "about": {**describe_outcome(outcome), "networks": networks},
        "inputs": inputs,
    }
    if path.suffix == ".onnx":
        copy = unpack_value(json.loads(json.dumps(content["model"])), tensors, own_layers)
        shape = outcome.settings.describe().input_shape
        about = {**content["about"], "inputs": inputs}
        return save_onnx(copy, shape, about, path, force=force)
    text = json.dumps(content)
    header = {NAME: f"{FORMAT} {text}", DIGEST: compute_digest(text, tensors)}
    try:
        with open_replacement(path, force=force) as part:
            save_file(tensors, part, header)
    except UsageError:
        raise
    except Exception as error:  # safetensors has its own, for a full disk
        raise RunError(
            f"The model could not be written to {path}: {format_error(error)}."
        ) from None
    return path


class Scorer(nn.Module):
    """`logits` of a global model as a module; the model is no part of it, so that its numbers are constants."""

    def __init__(self, model: GlobalModel) -> None:
        super().__init__()
        self._scores = model.logits

    def forward(self, x: Tensor) -> Tensor:
        return self._scores(x)


def export_onnx(model: GlobalModel, input_shape: tuple[int, ...]) -> Any:
    """PyTorch's export of `model`, whose scores of a few random samples were compared with the model's own. Any
    exception for a model that has no such form."""
    import onnx.reference

    samples = torch.export.Dim("samples", min=1, max=MOST_EXPORTED_SAMPLES)
    options: Any = {
        "input_names": ["x"],
        "output_names": ["scores"],
        "dynamic_shapes": ({0: samples},),
        "dynamo": True,
        "verbose": False,
    }
    with hide_warnings("torch.onnx"):
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            example = torch.zeros(3, *input_shape)
            program: Any = torch.onnx.export(Scorer(model), (example,), **options)
        evaluator = onnx.reference.ReferenceEvaluator(program.model_proto)
        # Other numbers of samples than the example's: what the exporter cannot follow would be a constant.
        for count in (2, 5):
            x = torch.rand(count, *input_shape, generator=torch.Generator().manual_seed(0))
            scores: Any
            (scores,) = evaluator.run(None, {"x": x.numpy()})
            np.testing.assert_allclose(scores, model.logits(x), rtol=1e-3, atol=1e-3)
    return program


@contextmanager
def hide_warnings(logger_name: str) -> Iterator[None]:
    """Within: this logger writes errors, and nothing less."""
    logger = logging.getLogger(logger_name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def save_onnx(
    model: GlobalModel, input_shape: tuple[int, ...], about: Any, path: Path, *, force: bool = False
) -> Path:
    """Write `model`, which this uses up (what it remembers is of no use afterwards). UsageError without the packages,
    RunError for a model that has no such form, or where there is no room or permission."""
    if not (find_spec("onnx") and find_spec("onnxscript")):
        raise UsageError(
            f"{path} needs the packages onnx and onnxscript; type {format_install_command('onnx')}, or save it as "
            ".safetensors."
        )
    try:
        program = export_onnx(model, input_shape)
        program.model.metadata_props["fedlab_nb"] = json.dumps(about)
        with open_replacement(path, force=force) as part:
            program.save(part)
    except UsageError:
        raise
    except Exception as error:  # whatever a layer, or a full disk, provokes in the exporter
        raise RunError(
            f"The model could not be written to {path}: {format_error(error)}; save it as .safetensors."
        ) from None
    return path


@use_default_switches()
def load_model(path: str | PathLike, device: str = "cpu") -> SavedModel:
    """The model that `Outcome.save` wrote. It predicts as the saved one did. UsageError for a file that is damaged,
    foreign, or of a newer version, and for a `device` that is not here.

    device: "cpu", "cuda", "cuda:1", or "auto": a GPU where there is one
    """
    from safetensors import safe_open

    path = expand_path(path)
    device = resolve_device(device)
    if not path.is_file():
        raise UsageError(
            f"There is no file {path}; give the path of a model that Outcome.save wrote."
        )
    try:
        with safe_open(path, "pt", device) as file:
            header = file.metadata() or {}
            # Cloned, so that they are aligned in memory as any others.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}
    except Exception as error:  # whatever a foreign file provokes
        raise UsageError(
            f"{path} is damaged, or no safetensors file ({format_error(error)}); save the model again."
        ) from None
    form, _, text = header.get(NAME, "").partition(" ")
    if not form.isdecimal():
        raise UsageError(f"{path} is no model of fedlab_nb; give a file that Outcome.save wrote.")
    if int(form) > FORMAT:
        raise UsageError(
            f"{path} was saved by a newer fedlab_nb (form {form}, and this one knows {FORMAT}); update the package."
        )
    digest = compute_digest(text, {name: tensor.cpu() for name, tensor in tensors.items()})
    if digest != header.get(DIGEST):
        raise UsageError(
            f"{path} is damaged: its content is not what was saved; save the model again."
        )
    try:
        content = json.loads(text)
        own_layers = find_own_layers(content["about"].get("networks", ()))
        inputs = content.get("inputs")
        if inputs:
            inputs = Inputs.from_json(inputs)
        model = unpack_value(content["model"], tensors, own_layers)
        return SavedModel(model, content["about"], device, inputs)
    except UsageError as error:
        raise UsageError(f"The model in {path} cannot be made: {format_error(error)}.") from None
    except Exception as error:
        raise UsageError(
            f"The model in {path} cannot be made ({format_error(error)}): a layer or a class in it is not known here; "
            "import the code that defines it first."
        ) from None
