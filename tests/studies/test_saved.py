"""Saved models: every method's model is the same after loading; damaged and foreign files are refused."""

import json
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import make_fast_study_settings
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from fedlab_nb import add_model, load_model, run
from fedlab_nb.cli import main
from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.methods import METHODS, GlobalModel
from fedlab_nb.models import MODELS
from fedlab_nb.studies import saved

SMALL = {"clients": 2, "epochs": 1, "share": 0.1, "cache": False, "device": "cpu"}
# Variants with other rules, heads, features, networks and transforms.
VARIANTS = [
    ("ensemble", {"rule": "beta"}), ("ensemble", {"rule": "class_counts"}), ("ensemble", {"rule": "votes"}),
    ("fens", {"aggregator": "nn"}), ("fens", {"aggregator": "moe"}), ("fens", {"aggregator": "voting"}),
    ("fens", {"activation_bits": 4, "bits": 8}), ("fens", {"distil": True}),
    ("coboosting", {"answer": "ensemble"}), ("distilled", {"server": "network"}),
    ("afl", {"features": "relu"}), ("afl", {"features": "conv"}), ("afl", {"features": "client"}),
    ("gauss", {"head": "lda"}), ("gauss", {"head": "nb"}), ("gauss", {"head": "means"}),
    ("fusefl", {"model": "cnn2", "head": "own"}), ("fusefl", {"adaptor": "average", "blocks": 1}),
    ("matching", {"rule": "pfnm", "model": "mlp1"}), ("ensemble", {"model": "mlp,cnn2"}),
    ("fedavg", {"model": "resnet8-gn:8", "transform": "standardise"}), ("fedavg", {"model": "cnn2-nobn"}),
    ("fedavg", {"dataset": "heart", "partition": "natural", "clients": 4, "share": 1}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name, change", [*((name, {}) for name in METHODS), *VARIANTS])
def test_a_loaded_model_equals_the_saved_one_to_the_last_bit(name, change, tmp_path):
    out = run(name, **make_fast_study_settings(name) | SMALL | change)
    loaded = load_model(out.save(tmp_path / "model.safetensors"))
    x = torch.rand(
        70, *loaded.about["data"]["input_shape"], generator=torch.Generator().manual_seed(1)
    )
    for read in ("logits", "features", "predict"):
        assert torch.equal(getattr(out.model, read)(x), getattr(loaded.model, read)(x)), read
    assert np.array_equal(out.predict(x.numpy()), loaded.predict(x.numpy()))
    result = loaded.about["result"]
    assert (result["method"], result["accuracy"], result["bytes_up"]) == (
        name,
        out.accuracy,
        out.bytes_up,
    )
    assert loaded.about["options"] == json.loads(json.dumps(out.options))


@cache
def run_small_model():
    """An outcome whose model has few numbers."""
    return run("fedavg", **make_fast_study_settings("fedavg") | SMALL | {"model": "mlp1:2"})


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    return run_small_model().save(tmp_path_factory.mktemp("saved") / "model.safetensors")


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_changed_file_is_refused_or_gives_the_same_model(model_file, data):
    content = bytearray(model_file.read_bytes())
    if data.draw(st.booleans()):
        position = data.draw(st.integers(0, len(content) - 1) | st.integers(0, 400))
        content[position] ^= data.draw(st.integers(1, 255))
    else:
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    changed_file = model_file.with_name("changed.safetensors")
    changed_file.write_bytes(content)
    x = torch.rand(9, 1, 8, 8)
    try:
        assert torch.equal(
            load_model(changed_file).model.logits(x), run_small_model().model.logits(x)
        )
    except UsageError as error:
        assert str(changed_file) in str(error)


def rewrite_file(model_file, change):
    """A copy of the file with a changed header and the digest that belongs to it."""
    with safe_open(model_file, "pt") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}
        metadata = opened.metadata()
    form, _, text = metadata[saved.NAME].partition(" ")
    form, text = change(form, text)
    changed_file = model_file.with_name("other.safetensors")
    save_file(
        tensors,
        changed_file,
        {saved.NAME: f"{form} {text}", saved.DIGEST: saved.compute_model_digest(text, tensors)},
    )
    return changed_file


@pytest.mark.parametrize(
    "change",
    [
        lambda form, text: (str(saved.FORMAT + 1), text),
        lambda form, text: (form, text.replace('"NetworkModel"', '"Popen"')),
        lambda form, text: (form, text.replace('"Linear"', '"os.system"')),
        lambda form, text: (form, text.replace('"model":', '"modell":')),
        lambda form, text: (form, "[]"),
    ],
)
def test_contents_that_this_version_does_not_know_are_refused(model_file, change):
    with pytest.raises(UsageError):
        load_model(rewrite_file(model_file, change))


def test_other_files_and_unusable_paths_are_refused(model_file, tmp_path):
    foreign = tmp_path / "foreign.safetensors"
    save_file({"x": torch.zeros(2)}, foreign)
    np.savez(tmp_path / "arrays.npz", x=np.zeros(2))
    for path in (foreign, tmp_path / "arrays.npz", tmp_path / "nothing.safetensors", tmp_path):
        with pytest.raises(UsageError):
            load_model(path)
    with pytest.raises(UsageError):
        run_small_model().save(tmp_path / "model.pt")
    with pytest.raises(RunError):
        run_small_model().save(tmp_path / "no folder" / "model.safetensors")


class Gate(nn.Module):
    """A user's layer with a parameter, a buffer, a number and a child."""

    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.register_buffer("shift", torch.full((width,), 0.25))
        self.slope = 1.5
        self.act = nn.Tanh()

    def forward(self, x):
        return self.act(self.slope * x * self.scale + self.shift)


class Linear(nn.Linear):
    """A user's layer with the name of one of PyTorch's and another `forward`."""

    def forward(self, x):
        return super().forward(x) + 1


@pytest.fixture
def users_network():
    """The name of a registered network of the user."""

    def make_layers(shape, width):
        inputs = int(np.prod(shape))
        return [nn.Flatten(), Linear(inputs, width), Gate(width)], width

    add_model("gated", make_layers, width=8)
    yield "gated"
    MODELS.pop("gated", None)


@pytest.mark.parametrize(
    "name, change",
    [
        ("fedavg", {"model": "gated"}),
        ("ensemble", {"model": "gated:3,mlp"}),
        ("feddf", {"server_model": "gated", "feddf.rounds": 1}),
        ("fens", {"model": "gated"}),
    ],
)
def test_a_users_network_is_saved_and_loaded_where_it_is_registered(
    users_network, name, change, tmp_path
):
    out = run(name, **make_fast_study_settings(name) | SMALL | change)
    path = out.save(tmp_path / "model.safetensors")
    x = torch.rand(9, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    assert torch.equal(load_model(path).model.logits(x), out.model.logits(x))
    layout = MODELS.pop(users_network).layout
    with pytest.raises(UsageError, match=r"fl\.add_model\('gated', \.\.\.\) first"):
        load_model(path)
    add_model(users_network, layout, width=8)
    assert torch.equal(load_model(path).model.logits(x), out.model.logits(x))


def test_a_users_layer_that_holds_a_function_is_refused(users_network, tmp_path):
    layout = MODELS[users_network].layout

    def make_layers_with_function(shape, width):
        blocks, features = layout(shape, width)
        blocks[-1].squash = torch.tanh
        return blocks, features

    add_model(users_network, make_layers_with_function, width=8)
    out = run("fedavg", **make_fast_study_settings("fedavg") | SMALL | {"model": "gated"})
    with pytest.raises(UsageError, match="function in a layer of your own"):
        out.save(tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_model_of_an_unknown_class_is_not_saved():
    class Own(GlobalModel):
        parts = ("rule",)
        rule = staticmethod(print)

    with pytest.raises(UsageError):
        saved.convert_value_to_json_and_collect_tensors(Own(), {})


@pytest.mark.parametrize("device", ["cuda", "cuda:7", "mps", "gpu", ""])
def test_an_unavailable_device_is_named(model_file, device, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UsageError, match=f"{device!r}.*auto"):
        load_model(model_file, device=device)
    assert load_model(model_file, device="auto").device == "cpu"


def test_the_memory_layout_of_tensors_is_kept(tmp_path):
    tensors = {}
    for value in (
        torch.rand(3, 4).T,
        torch.rand(2, 3, 4).permute(2, 0, 1),
        torch.rand(5),
        torch.tensor(1.0),
    ):
        restored = saved.restore_value_from_json_and_tensors(
            saved.convert_value_to_json_and_collect_tensors(value, tensors, "x"), tensors
        )
        assert torch.equal(restored, value) and restored.stride() == value.stride()


def test_the_command_line_saves_one_run(tmp_path, capsys):
    path = str(tmp_path / "model.safetensors")
    assert main(["run", "fedavg", "--clients", "2", "--set", "epochs=1", "--save", path]) == 0
    assert load_model(path).about["method"] == "fedavg"
    assert main(["run", "fedavg", "fens", "--save", path]) == 2
    assert main(["run", "all", "--save", path]) == 2
