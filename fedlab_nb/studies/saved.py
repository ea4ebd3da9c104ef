"""Saved models: the model itself, the settings that it comes from, and its result. `Outcome.save` writes such a file.

    out.save("model.safetensors")
    model = fl.load_model("model.safetensors")
    model.predict("new_rows.csv")             # raw rows: a DataFrame of labels and probabilities
    model.predict(x), model.about["alpha"]    # prepared tensors: only the classes

The file has the format of safetensors: tensors by their path in the model ("module.body.0.1.weight"), and a JSON text
that describes the objects to which they belong. A class is stored as a name and looked up among the classes that this
process knows (`find_loadable_model_classes_by_name`): nothing is imported or executed, and there is no pickle. A user's
own layers can be loaded after `add_model` has added their network. Tensors keep their dtype and the order of their axes
in memory, so that on the same machine and device the loaded model predicts the same to the last digit. Only the model
is kept, not the report, nor anything else that clients have sent. A digest of text and tensors detects a damaged file.

`out.save("model.onnx")` writes the other format, for programs without PyTorch. It needs the optional dependencies
`onnx` (packages onnx and onnxscript, 11 MB). The graph has one input `x`, float32 `[samples, ...]`, prepared as the
data set's own, and one output, the `scores` `[samples, C]` of the model's `logits`; the largest score is the class. The
number of samples is free. PyTorch's exporter writes the graph, and its scores of a few random samples are compared with
the model's. The file's metadata have, under "fedlab_nb", the origin of the model and the description of its inputs.
`load_model` reads only safetensors.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from math import prod
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import torch
from torch import Tensor, nn

from ..data.array_types import FeatureArray
from ..data.dataset import SampleShape
from ..data.input_types import ArrayLike, FrameDictsArrayPicturesOrPath
from ..errors import RunError, UsageError, format_error_on_one_line
from ..files import check_replaceable, expand_path, replace_file_at_end_of_block
from ..installation import format_install_command
from ..methods import GlobalModel
from ..methods.fens.model import Experts
from ..methods.gauss import ClassScorer
from ..methods.parts.frozen import FrozenFeatures
from ..models import build, is_added_model, parse_architecture
from ..models.network import Architecture
from ..tensor_types import Samples
from ..torch_switches import use_default_torch_switches
from ..training import ClientModels
from ..training.calibration import SCORES
from ..value_types import JsonObject, JsonValue, WithBlock
from .inputs import InputPreparation, replace_folder_by_its_pictures
from .settings import MethodRunPlan, resolve_device
from .store import StoreWarning, read_package_versions

if TYPE_CHECKING:
    from pandas import DataFrame
    from torch.onnx import ONNXProgram

    from .outcome import Outcome

FORMAT = 1
# The header's entries: "FORMAT JSON", and the digest.
NAME = "fedlab_nb model"
DIGEST = "sha256"
LABEL = "label"  # the first column of a table of predictions
OWN = "own."  # prefix of the names of a user's own layers
# A part of a model: a number, a text, a tensor, a layer, another object, or a list of these.
SavedValue = Any
# Every model reads so many samples in one chunk (`training.evaluate`), so an exported graph is not split into chunks.
MOST_EXPORTED_SAMPLES = 64
# The attributes that every layer has.
MODULE_ATTRIBUTES = frozenset(vars(nn.Module()))
# The attributes in which a layer keeps its tensors and its sublayers.
MODULE_PARTS = ("_parameters", "_buffers", "_modules")


class Predictor:
    """Base of classes that have a global `model` on a `device` and predict with it."""

    model: Any
    device: str
    inputs: InputPreparation | None

    @property
    def input_shape(self) -> SampleShape:
        """The shape of a prepared sample: (C, H, W), (C, T) or (D,)."""
        raise NotImplementedError

    def _reshape_prepared_samples(self, samples: ArrayLike) -> Samples:
        """Bring prepared samples into the shape, dtype and device that the model reads.

        They may be flattened, and grey images may lack the channel axis. UsageError for other shapes.
        """
        if not isinstance(samples, Tensor):
            samples = torch.as_tensor(np.asarray(samples))
        is_flat = samples.ndim == 2 and samples.shape[1] == prod(self.input_shape)
        if is_flat or (1, *samples.shape[1:]) == self.input_shape:
            samples = samples.reshape(len(samples), *self.input_shape)
        if tuple(samples.shape[1:]) != self.input_shape:
            shape_text = ", ".join(str(length) for length in self.input_shape)
            raise UsageError(
                f"The samples have shape {tuple(samples.shape)}, but this model reads [N, "
                f"{shape_text}]; prepare them as fl.load(...).x_test is, or give raw rows."
            )
        return samples.to(self.device, torch.float32)

    @overload
    def predict(self, rows: Tensor) -> np.ndarray: ...

    @overload
    def predict(self, rows: FrameDictsArrayPicturesOrPath) -> DataFrame | np.ndarray: ...

    @use_default_torch_switches()
    @torch.no_grad()
    def predict(self, rows: Tensor | FrameDictsArrayPicturesOrPath) -> DataFrame | np.ndarray:
        """Predict the classes of `rows`.

        rows: raw rows, as they are in your file: a DataFrame, the path of a file, a dict or a list of dicts, an array
        with the raw numbers, or pictures (files, or a folder of them). Columns are found by name: they may be in any
        order, and additional ones are ignored. The result is a DataFrame with a line for each row: `label`, the name
        of the class, and a column for each class with its probability; if the method has no probabilities, these
        columns are its scores, called "NAME (score)".
        A tensor is taken as prepared (`fl.load(...).x_test`); the result are its classes as whole numbers `[N]`. So is
        an array if the data set has no raw rows, as those of the package.

        Raises UsageError, in one sentence, for a missing column, a cell that cannot be read, an unknown category, other
        shapes or ranges, and for a model that does not know how raw rows become its inputs.
        """
        if isinstance(rows, Tensor):
            return self._predict_prepared_samples(rows)
        if self._expects_only_prepared_arrays() and is_array_or_list_of_numbers(rows):
            return self._predict_prepared_samples(rows)
        if self.inputs is None:
            raise UsageError(
                "This model was saved by an older fedlab_nb, which did not save how raw rows "
                "are prepared for it; save it again, or give a tensor that is prepared as the "
                "data set's own."
            )
        rows = replace_folder_by_its_pictures(rows)
        x = self.inputs.encode(rows).to(self.device)
        return make_prediction_table(self.model, x, self.inputs, rows)

    def _predict_prepared_samples(self, samples: ArrayLike) -> np.ndarray:
        """Predict the classes of prepared samples, `[N]`."""
        return self.model.predict(self._reshape_prepared_samples(samples)).cpu().numpy()

    def _expects_only_prepared_arrays(self) -> bool:
        """True if every array must be of prepared samples, because the model knows of no raw rows."""
        return self.inputs is None or self.inputs.schema is None or self.inputs.is_bundled

    @use_default_torch_switches()
    @torch.no_grad()
    def features(self, samples: ArrayLike) -> FeatureArray:
        """The feature vectors `[N, D]` that the last linear layer reads (for ensembles: the concatenated logits)."""
        return self.model.features(self._reshape_prepared_samples(samples)).cpu().numpy()


def is_array_or_list_of_numbers(rows: object) -> bool:
    """True if `rows` is an array of numbers, or lists of numbers."""
    if not isinstance(rows, np.ndarray | list | tuple):
        return False
    return np.asarray(rows).dtype.kind in "biuf"


def make_prediction_table(
    model: GlobalModel,
    prepared_samples: Samples,
    inputs: InputPreparation,
    raw_rows_for_index: FrameDictsArrayPicturesOrPath,
) -> DataFrame:
    """Predict `prepared_samples [N, ...]`: a table with each sample's class and the probabilities or scores.

    raw_rows_for_index: the raw rows of the samples; the table gets their index, or the names of their files
    """
    import pandas

    scores = model.logits(prepared_samples).double().cpu()
    if SCORES[model.score_kind]:
        values = scores.softmax(1)
        ending = ""
    else:
        values = scores
        ending = " (score)"
    columns = [f"{name}{ending}" for name in inputs.class_names]
    table = pandas.DataFrame(values.numpy(), columns=columns)
    # A class may have the first column's name.
    table = table.rename(columns={LABEL: f"{LABEL} (class)"})
    predictions = model.predict(prepared_samples).tolist()
    table.insert(0, LABEL, [inputs.class_names[c] for c in predictions])
    if isinstance(raw_rows_for_index, pandas.DataFrame):
        table.index = raw_rows_for_index.index
    elif is_list_of_paths(raw_rows_for_index):
        table.index = pandas.Index([str(row) for row in raw_rows_for_index], name="file")
    return table


def is_list_of_paths(rows: object) -> bool:
    """True if `rows` is a list of paths."""
    return isinstance(rows, list | tuple) and all(isinstance(row, str | PathLike) for row in rows)


@dataclasses.dataclass(frozen=True, eq=False)
class SavedModel(Predictor):
    """A model from a file.

    about: its method, settings, recipe, options, package versions and result
    inputs: the preparation of raw rows, and the names of the classes; None for a file of an older version
    """

    model: GlobalModel
    about: Mapping[str, Any]
    device: str = "cpu"
    inputs: InputPreparation | None = None

    @property
    def input_shape(self) -> SampleShape:
        return tuple(self.about["data"]["input_shape"])

    def __repr__(self) -> str:
        method = self.about["method"]
        dataset = self.about["dataset"]
        accuracy = self.about["result"]["accuracy"]
        return f"SavedModel({method!r}, {dataset!r}, accuracy {accuracy:.1%})"


# ---------------------------------------------------------------------------------------------------- what a file names
def walk_class_and_all_subclasses(base: type) -> Iterator[type]:
    """Yield `base` and all its subclasses in this process."""
    yield base
    subclass: type
    for subclass in base.__subclasses__():
        yield from walk_class_and_all_subclasses(subclass)


def find_loadable_model_classes_by_name() -> dict[str, type[GlobalModel | nn.Module | Any]]:
    """Find all classes that a file may contain, by name: global models, their parts, and PyTorch's layers."""
    classes: list[type] = []
    for cls in walk_class_and_all_subclasses(nn.Module):
        if cls.__module__.startswith(("torch.nn.modules.", "fedlab_nb.")):
            classes.append(cls)
    classes += walk_class_and_all_subclasses(GlobalModel)
    classes += [ClientModels, Experts, FrozenFeatures, ClassScorer]
    classes_by_name = {cls.__name__: cls for cls in classes}
    for former, name in FORMER_NAMES.items():
        classes_by_name[former] = classes_by_name[name]
    return classes_by_name


# Classes that were renamed: {the name in older files: the name now}.
FORMER_NAMES = {"Represented": "CommonHeadNetwork", "Scores": "ClassScorer"}


def list_user_defined_architectures(plan: MethodRunPlan) -> list[Architecture]:
    """List (name, input_shape, classes, width) of a run's networks that were added with `add_model`."""
    architectures = set(plan.architectures)
    options = dataclasses.asdict(plan.method)  # type: ignore[call-overload]
    for knob in plan.method.fields():
        text = options[knob.name]
        if knob.model and text != "auto":
            _, shape, classes, _ = plan.architectures[0]
            architectures.add(parse_architecture(text, shape, classes))
    added = [architecture for architecture in architectures if is_added_model(architecture[0])]
    return sorted(added, key=str)


def find_own_layer_classes_of_added_models(
    architectures: Iterable[Architecture],
) -> dict[str, type]:
    """Find the user's own layer classes in these networks, by name; each network is built once to find them.

    UsageError if a network has not been added in this process.
    """
    layer_classes_by_prefixed_name = {}
    for name, shape, count, width in architectures:
        if not is_added_model(name):
            raise UsageError(
                f"it has the network {name!r}, which is not part of this package; call "
                f"fl.add_model({name!r}, ...) first, with the code that it was trained "
                "with"
            )
        network = build(name, tuple(shape), count, width=width)
        loadable_classes = find_loadable_model_classes_by_name()
        for layer in network.modules():
            cls = type(layer)
            if loadable_classes.get(cls.__name__) is not cls:
                layer_classes_by_prefixed_name[f"{OWN}{cls.__name__}"] = cls
    return layer_classes_by_prefixed_name


class ClassAndAttributeNames(NamedTuple):
    """The class under whose name an object is saved, and the names of its saved attributes."""

    cls: type
    names: tuple[str, ...]


def get_class_and_attributes_to_save(cls: type) -> ClassAndAttributeNames:
    """Find the class under whose name an object of `cls` is saved, and the attributes that make it; none for layers."""
    if dataclasses.is_dataclass(cls):
        names = tuple(field.name for field in dataclasses.fields(cls))
        return ClassAndAttributeNames(cls, names)
    for base in cls.__mro__:
        if vars(base).get("parts"):
            return ClassAndAttributeNames(base, vars(base)["parts"])
    return ClassAndAttributeNames(cls, ())


# -------------------------------------------------------------------------------------------------- objects and tensors
def convert_value_to_json_and_collect_tensors(
    value: SavedValue,
    tensors_to_fill: dict[str, Tensor],
    path_in_model: str = "",
    layer_classes_by_prefixed_name: Mapping[str, type] = MappingProxyType({}),
) -> JsonValue:
    """Convert `value` to JSON, and put its tensors into `tensors_to_fill` by their path in the model.

    layer_classes_by_prefixed_name: the user's own layer classes, by name

    UsageError for a value that cannot be saved.
    """

    def pack_part(name: object, part: Any) -> Any:
        path = f"{path_in_model}.{name}" if path_in_model else str(name)
        return convert_value_to_json_and_collect_tensors(
            part, tensors_to_fill, path, layer_classes_by_prefixed_name
        )

    def pack_parts(parts: Mapping[str, Any]) -> dict[str, Any]:
        return {name: pack_part(name, part) for name, part in parts.items()}

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        strides = value.stride()
        # The axes in the order of memory, so that the saved tensor is contiguous.
        axes = sorted(range(value.dim()), key=lambda axis: -strides[axis])
        tensors_to_fill[path_in_model] = value.detach().cpu().permute(axes).contiguous().clone()
        return {"tensor": path_in_model, "axes": axes}
    if isinstance(value, list | tuple):
        items = [pack_part(i, item) for i, item in enumerate(value)]
        return {type(value).__name__: items}
    cls, attributes = get_class_and_attributes_to_save(type(value))
    name = choose_name_for_saved_class(cls, layer_classes_by_prefixed_name, path_in_model)
    if attributes:
        parts = {attribute: getattr(value, attribute) for attribute in attributes}
        return {"is": name, "of": pack_parts(parts)}
    if not isinstance(value, nn.Module):
        raise UsageError(f"A {cls.__name__} declares no parts, so it cannot be saved.")
    other_attributes = {
        key: part for key, part in vars(value).items() if key not in MODULE_ATTRIBUTES
    }
    packed: dict[str, Any] = {"layer": name, "of": pack_parts(other_attributes)}
    for kind in MODULE_PARTS:
        packed[kind] = pack_parts(getattr(value, kind))
    return packed


def choose_name_for_saved_class(
    cls: type, layer_classes_by_prefixed_name: Mapping[str, type], path_in_model: str
) -> str:
    """Choose the name of a class in a file; UsageError if loading would not find the class by it."""
    name = cls.__name__
    if layer_classes_by_prefixed_name.get(f"{OWN}{name}") is cls:
        return f"{OWN}{name}"
    if find_loadable_model_classes_by_name().get(name) is not cls:
        raise UsageError(
            f"A {name} cannot be saved (in {path_in_model or 'the model'}): it is neither a part "
            "of fedlab_nb's models nor a layer of a network that was added by fl.add_model; if it "
            "is a function in a layer of your own, replace it by a layer such as nn.ReLU()."
        )
    return name


def restore_value_from_json_and_tensors(
    packed_value: JsonValue,
    tensors: Mapping[str, Tensor],
    layer_classes_by_prefixed_name: Mapping[str, type] = MappingProxyType({}),
) -> SavedValue:
    """Undo `convert_value_to_json_and_collect_tensors`. Raises any exception for a value that it has not made."""
    if not isinstance(packed_value, dict):
        return packed_value
    if "tensor" in packed_value:
        axes = packed_value["axes"]
        original_order = [axes.index(axis) for axis in range(len(axes))]
        return tensors[packed_value["tensor"]].permute(original_order)

    def unpack(part: JsonValue) -> SavedValue:
        return restore_value_from_json_and_tensors(part, tensors, layer_classes_by_prefixed_name)

    def unpack_parts(parts: dict) -> dict[str, Any]:
        return {name: unpack(part) for name, part in parts.items()}

    if "list" in packed_value:
        return [unpack(item) for item in packed_value["list"]]
    if "tuple" in packed_value:
        return tuple(unpack(item) for item in packed_value["tuple"])
    classes = find_loadable_model_classes_by_name()
    if "is" in packed_value:
        cls = classes[packed_value["is"]]
        restored = cls(**unpack_parts(packed_value["of"]))
        if isinstance(restored, nn.Module):
            restored.eval()
        return restored
    layer_classes = {**classes, **layer_classes_by_prefixed_name}
    return restore_layer(
        layer_classes[packed_value["layer"]],
        attributes=unpack_parts(packed_value["of"]),
        parameters=unpack_parts(packed_value["_parameters"]),
        buffers=unpack_parts(packed_value["_buffers"]),
        children=unpack_parts(packed_value["_modules"]),
    )


def restore_layer(
    cls: type[nn.Module],
    attributes: Mapping[str, SavedValue],
    parameters: Mapping[str, Tensor | None],
    buffers: Mapping[str, Tensor | None],
    children: Mapping[str, nn.Module],
) -> nn.Module:
    """Make a layer of class `cls` with these contents, in eval mode, without calling its `__init__`."""
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
def compute_model_digest(model_json: str, tensors: Mapping[str, Tensor]) -> str:
    """Compute the SHA-256 of the JSON text and of the tensors: their names, dtypes, shapes and numbers."""
    total = hashlib.sha256(model_json.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        if tensor.numel():
            total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def describe_origin_of_model(outcome: Outcome) -> JsonObject:
    """Describe the origin of a model: the settings, data, result and package versions of its run."""
    result = outcome.to_json()
    del result["extras"]
    dataset = outcome.settings.describe_dataset()
    data = {
        "digest": outcome.plan.digest,
        "input_shape": list(dataset.input_shape),
        "classes": dataset.classes,
    }
    return {**outcome.about(), "data": data, "result": result, "made": read_package_versions()}


def expand_and_check_path_for_saving(path: str | PathLike, *, force: bool = False) -> Path:
    """Check that a model can be saved at `path`; returns the path with `~` replaced.

    UsageError for another ending, or if a file that the package did not write is there (unless `force`).
    """
    target = expand_path(path)
    if target.suffix not in (".safetensors", ".onnx"):
        raise UsageError(
            f"{str(path)!r} must end in .safetensors, which load_model reads, or in .onnx "
            "for other programs."
        )
    check_replaceable([target], force=force)
    return target


@use_default_torch_switches()
def save(outcome: Outcome, path: str | PathLike, *, force: bool = False) -> Path:
    """Write the outcome's model, with its origin, to a file.

    UsageError for another ending, or if a file that the package did not write is there (unless `force`). RunError if
    there is no room or no permission.
    """
    from safetensors.torch import save_file

    path = expand_and_check_path_for_saving(path, force=force)
    tensors: dict[str, Tensor] = {}
    try:
        inputs = outcome.inputs.to_json()
    except UsageError as error:  # better a model that reads only prepared tensors than none
        warnings.warn(f"The saved model reads no raw rows: {error}", StoreWarning, stacklevel=5)
        inputs = None
    networks = list_user_defined_architectures(outcome.plan)
    layer_classes_by_prefixed_name = find_own_layer_classes_of_added_models(networks)
    content = {
        "model": convert_value_to_json_and_collect_tensors(
            outcome.model, tensors, layer_classes_by_prefixed_name=layer_classes_by_prefixed_name
        ),
        "about": {**describe_origin_of_model(outcome), "networks": networks},
        "inputs": inputs,
    }
    if path.suffix == ".onnx":
        model_as_json = json.loads(json.dumps(content["model"]))
        copy = restore_value_from_json_and_tensors(
            model_as_json, tensors, layer_classes_by_prefixed_name
        )
        shape = outcome.settings.describe_dataset().input_shape
        about = {**content["about"], "inputs": inputs}
        return save_onnx_and_spoil_model(copy, shape, about, path, force=force)
    text = json.dumps(content)
    header = {NAME: f"{FORMAT} {text}", DIGEST: compute_model_digest(text, tensors)}
    try:
        with replace_file_at_end_of_block(path, force=force) as part:
            save_file(tensors, part, header)
    except UsageError:
        raise
    except Exception as error:  # for a full disk safetensors has an exception class of its own
        raise RunError(
            f"The model could not be written to {path}: {format_error_on_one_line(error)}."
        ) from None
    return path


class Scorer(nn.Module):
    """A module that computes a global model's `logits`. The model is not a submodule, so its weights are constants."""

    def __init__(self, model: GlobalModel) -> None:
        super().__init__()
        self._scores = model.logits

    def forward(self, x: Tensor) -> Tensor:
        return self._scores(x)


def export_and_check_onnx(model: GlobalModel, input_shape: SampleShape) -> ONNXProgram:
    """Export `model` by PyTorch, and check the exported scores of a few random samples against the model's own.

    Raises any exception for a model that cannot be exported.
    """
    import onnx.reference

    samples = torch.export.Dim("samples", min=1, max=MOST_EXPORTED_SAMPLES)
    options: Any = {
        "input_names": ["x"],
        "output_names": ["scores"],
        "dynamic_shapes": ({0: samples},),
        "dynamo": True,
        "verbose": False,
    }
    with hide_warnings_of_logger("torch.onnx"):
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            example = torch.zeros(3, *input_shape)
            program: Any = torch.onnx.export(Scorer(model), (example,), **options)
        evaluator = onnx.reference.ReferenceEvaluator(program.model_proto)
        # Not the example's number of samples, since the exporter may have made a constant of that.
        for count in (2, 5):
            x = torch.rand(count, *input_shape, generator=torch.Generator().manual_seed(0))
            scores: Any
            (scores,) = evaluator.run(None, {"x": x.numpy()})
            np.testing.assert_allclose(scores, model.logits(x), rtol=1e-3, atol=1e-3)
    return program


@contextmanager
def hide_warnings_of_logger(logger_name: str) -> WithBlock:
    """Inside the block this logger writes only errors."""
    logger = logging.getLogger(logger_name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def save_onnx_and_spoil_model(
    model: GlobalModel,
    input_shape: SampleShape,
    description: JsonObject,
    path: Path,
    *,
    force: bool = False,
) -> Path:
    """Export `model` to a file; the model must not be used afterwards, as its caches are spoilt.

    UsageError without the packages. RunError for a model that cannot be exported, or if there is no room or no
    permission.
    """
    if not (find_spec("onnx") and find_spec("onnxscript")):
        raise UsageError(
            f"{path} needs the packages onnx and onnxscript; type "
            f"{format_install_command('onnx')}, or save it as .safetensors."
        )
    try:
        program = export_and_check_onnx(model, input_shape)
        program.model.metadata_props["fedlab_nb"] = json.dumps(description)
        with replace_file_at_end_of_block(path, force=force) as part:
            program.save(part)
    except UsageError:
        raise
    except Exception as error:  # the exporter raises many kinds, for a layer or for a full disk
        raise RunError(
            f"The model could not be written to {path}: {format_error_on_one_line(error)}; save it as "
            ".safetensors."
        ) from None
    return path


@use_default_torch_switches()
def load_model(path: str | PathLike, device: str = "cpu") -> SavedModel:
    """Load a model that `Outcome.save` wrote. It predicts as the saved one did.

    device: "cpu", "cuda", "cuda:1", or "auto": a GPU if there is one

    UsageError for a file that is damaged, of another kind, or of a newer version, and for a `device` that this machine
    does not have.
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
            # Cloned, so that they are aligned in memory like other tensors.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}
    except Exception as error:  # other kinds of files raise many kinds of errors
        raise UsageError(
            f"{path} is damaged or is not a safetensors file ({format_error_on_one_line(error)}); save the "
            "model again."
        ) from None
    form, _, text = header.get(NAME, "").partition(" ")
    if not form.isdecimal():
        raise UsageError(
            f"{path} is not a model of fedlab_nb; give a file that Outcome.save wrote."
        )
    if int(form) > FORMAT:
        raise UsageError(
            f"{path} was saved by a newer fedlab_nb (format {form}, and this one reads "
            f"{FORMAT}); update the package."
        )
    digest = compute_model_digest(text, {name: tensor.cpu() for name, tensor in tensors.items()})
    if digest != header.get(DIGEST):
        raise UsageError(
            f"{path} is damaged: its content is not what was saved; save the model again."
        )
    try:
        content = json.loads(text)
        layer_classes_by_prefixed_name = find_own_layer_classes_of_added_models(
            content["about"].get("networks", ())
        )
        inputs = content.get("inputs")
        if inputs:
            inputs = InputPreparation.from_json(inputs)
        model = restore_value_from_json_and_tensors(
            content["model"], tensors, layer_classes_by_prefixed_name
        )
        return SavedModel(model, content["about"], device, inputs)
    except UsageError as error:
        raise UsageError(
            f"The model in {path} cannot be loaded: {format_error_on_one_line(error)}."
        ) from None
    except Exception as error:
        raise UsageError(
            f"The model in {path} cannot be loaded ({format_error_on_one_line(error)}): a layer or a "
            "class in it is not known here; import the code that defines it first."
        ) from None
