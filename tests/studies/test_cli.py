"""The command line as a person types it: output, exit codes, one sentence for every wrong use."""

import json
import re
import runpy
import sys

import pytest
import torch

from fedlab_nb.cli import main

QUICK = ["--clients", "3", "--set", "epochs=1"]


def test_run_json_prints_one_object_a_line_and_nothing_else(capsys):
    assert main(["run", "fedavg", "fens", "--json", *QUICK]) == 0
    out, err = capsys.readouterr()
    records = [json.loads(line) for line in out.splitlines()]
    assert [r["method"] for r in records] == ["fedavg", "fens"] and err == ""
    assert not records[0]["cached"]
    assert main(["run", "fedavg", "--json", *QUICK]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["cached"] and again["accuracy"] == records[0]["accuracy"]
    assert main(["run", "fedavg", "--json", "--no-cache", *QUICK]) == 0
    assert not json.loads(capsys.readouterr().out)["cached"]


def test_set_reaches_methods_recipes_and_settings(capsys):
    assert (
        main(["run", "fens", "--json", *QUICK, "--set", "fens.rounds=2", "--set", "holdout=0.3"])
        == 0
    )
    small = json.loads(capsys.readouterr().out)
    assert main(["run", "fens", "--json", *QUICK, "--set", "rounds=3", "--set", "holdout=0.3"]) == 0
    large = json.loads(capsys.readouterr().out)
    # One more round of per-class weights: 3 clients x 3 x 10 float32 each way.
    assert (
        large["bytes_up"] - small["bytes_up"]
        == large["bytes_down"] - small["bytes_down"]
        == 3 * 3 * 10 * 4
    )


# Each option's way to its check; what a setting refuses is tested in test_experiment.
WRONG = """run fens --alpha much|run fens --clients 2.5|run fens --dataset no.npz|run fens --device tpu
run fens --seed -1|run fens --partition x|run fens --model cnnn|run fens --preset x|run fens --backend x
run fens --set roundz=3|run fens --set rounds|run fens --set fens.aggregator=x|run fens --seeds 0
run fens --bogus|runn|run|run fedavgg|sweep"""


@pytest.mark.parametrize("wrong", re.split(r"[|\n]", WRONG))
def test_wrong_use_is_one_sentence_and_exit_code_2(wrong, capsys):
    assert main(wrong.split()) == 2
    out, err = capsys.readouterr()
    assert (
        out == ""
        and len(err.strip().splitlines()) == 1
        and "Traceback" not in err
        and err.strip().endswith(".")
    )


def test_no_network_is_a_failed_run_that_names_what_works(capsys, monkeypatch, tmp_path):
    import urllib.request

    def offline(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setenv("FEDLAB_NB_DATA", str(tmp_path))
    monkeypatch.setattr(urllib.request, "urlopen", offline)
    pytest.importorskip("torchvision")
    assert main(["run", "fedavg", "--dataset", "cifar10"]) == 1
    err = capsys.readouterr().err
    assert "digits" in err and ".npz" in err and len(err.strip().splitlines()) == 1


def test_cuda_that_is_not_there(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["run", "fedavg", "--device", "cuda"]) == 2
    assert "use device='auto' or 'cpu'" in capsys.readouterr().err


def test_a_set_up_is_planned_and_run(capsys):
    assert (
        main(["plan", "fedlpa", "fedavg", "fens", "--dataset", "digits", "--set", "lr=0.02"]) == 0
    )
    text = capsys.readouterr().out
    assert all(
        word in text
        for word in ("not in this paper", "given here", "0.02", "fedavg", "section 4.1", "200")
    )
    assert main(["plan", "paper"]) == 2
    asked = [
        "--preset",
        "fedlpa",
        "--dataset",
        "digits",
        "--clients",
        "3",
        "--set",
        "epochs=1",
        "--model",
        "mlp",
    ]
    capsys.readouterr()
    assert main(["run", "fedavg", *asked, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["preset"], row["alpha"], row["clients"], row["holdout"]) == ("fedlpa", 0.1, 3, 0)


def test_list_and_doctor(capsys):
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert all(
        word in text for word in ("fens", "fedlpa", "digits", "glyphs", "dirichlet", "resnet8")
    )
    assert main(["list", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)
    assert set(groups) == {"methods", "datasets", "models", "partitions", "presets"}
    rows = [
        re.search(rf"^  {name} +", text, re.MULTILINE)[0]
        for group in groups.values()
        for name in group
    ]
    assert len({len(row) for row in rows}) == 1, "the texts begin below each other"
    assert main(["doctor"]) == 0
    assert "training       works" in capsys.readouterr().out


def test_sweep_command(capsys, tmp_path):
    words = [
        *"sweep --methods fedavg --clients 2 --set epochs=1 --out".split(),
        str(tmp_path),
        "--alphas",
    ]
    assert main([*words, "0.1,1"]) == 0
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 3
    assert main([*words, "0.1,zero"]) == 2


def test_python_m_works(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fedlab_nb", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("fedlab_nb", run_name="__main__")
    assert capsys.readouterr().out.startswith("fedlab-nb ")
