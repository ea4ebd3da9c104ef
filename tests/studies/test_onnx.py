"""Models saved as ONNX predict the same without PyTorch, for any number of samples."""

import json

import numpy as np
import pytest
import torch
from method_runs import make_fast_study_settings

from fedlab_nb import run
from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.methods import METHODS, GlobalModel
from fedlab_nb.studies import saved

SMALL = {"clients": 2, "epochs": 1, "share": 0.1, "cache": False}
VARIANTS = [("gauss", {"head": "protohyper"}), ("ensemble", {"rule": "median"}), ("fens", {"aggregator": "moe"}),
          ("fedavg", {"model": "cnn2"}), ("fedavg", {"dataset": "watch", "partition": "iid"})]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name, change", [*((name, {}) for name in METHODS), *VARIANTS])
def test_the_graph_predicts_what_the_model_predicts(name, change, tmp_path):
    onnx = pytest.importorskip("onnx")
    reference = pytest.importorskip("onnx.reference")
    out = run(name, **make_fast_study_settings(name) | SMALL | {"model": "auto"} | change)
    path = out.save(tmp_path / "model.onnx")
    graph = reference.ReferenceEvaluator(str(path))
    shape = out.settings.describe_dataset().input_shape
    for count in (1, 7, 80):
        x = torch.rand(count, *shape, generator=torch.Generator().manual_seed(count))
        (scores,) = graph.run(None, {"x": x.numpy()})
        np.testing.assert_allclose(scores, out.model.logits(x).detach(), rtol=1e-4, atol=1e-4)
    (about,) = onnx.load(path).metadata_props
    assert json.loads(about.value)["method"] == name


class ValueDependentModel(GlobalModel):
    """A model whose computation depends on the values of the samples, which a graph cannot express."""

    def logits(self, samples):
        factor = 1 if float(samples.sum()) > 1 else 2
        return samples[:, :2] * factor


def test_other_endings_and_a_missing_package_are_refused(monkeypatch, tmp_path):
    out = run("afl", **make_fast_study_settings("afl") | SMALL)
    with pytest.raises(UsageError, match="must end in"):
        out.save(tmp_path / "model.onx")
    monkeypatch.setattr(saved, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install"):
        out.save(tmp_path / "model.onnx")


@pytest.mark.slow
def test_a_model_that_depends_on_values_is_refused(tmp_path):
    pytest.importorskip("onnxscript")
    with pytest.raises(RunError, match="save it as .safetensors"):
        saved.save_onnx_and_spoil_model(ValueDependentModel(), (4,), {}, tmp_path / "model.onnx")
