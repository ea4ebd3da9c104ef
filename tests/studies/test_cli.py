"""The command line: output, exit codes, one sentence for every wrong use."""

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
    second_record = json.loads(capsys.readouterr().out)
    assert second_record["cached"] and second_record["accuracy"] == records[0]["accuracy"]
    assert main(["run", "fedavg", "--json", "--no-cache", *QUICK]) == 0
    assert not json.loads(capsys.readouterr().out)["cached"]


def test_set_changes_methods_recipes_and_settings(capsys):
    assert (
        main(["run", "fens", "--json", *QUICK, "--set", "fens.rounds=2", "--set", "holdout=0.3"])
        == 0
    )
    small = json.loads(capsys.readouterr().out)
    assert main(["run", "fens", "--json", *QUICK, "--set", "rounds=3", "--set", "holdout=0.3"]) == 0
    large = json.loads(capsys.readouterr().out)
    # One more round of per-class weights: 3 clients x 3 x 10 float32 each way.
    one_round = 3 * 3 * 10 * 4
    assert large["bytes_up"] - small["bytes_up"] == one_round
    assert large["bytes_down"] - small["bytes_down"] == one_round


# One wrong value for each option; test_experiment tests what settings refuse.
WRONG = """run fens --alpha much|run fens --clients 2.5|run fens --dataset no.npz|run fens --device tpu
run fens --seed -1|run fens --partition x|run fens --model cnnn|run fens --preset x|run fens --backend x
run fens --set roundz=3|run fens --set rounds|run fens --set fens.aggregator=x|run fens --seeds 0
run fens --bogus|runn|run|run fedavgg|sweep"""


@pytest.mark.parametrize("wrong", re.split(r"[|\n]", WRONG))
def test_wrong_use_is_one_sentence_and_exit_code_2(wrong, capsys):
    assert main(wrong.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err
    assert err.strip().endswith(".")


def test_without_a_network_a_run_fails_and_names_data_that_work(capsys, monkeypatch, tmp_path):
    import urllib.request

    def offline(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setenv("FEDLAB_NB_DATA", str(tmp_path))
    monkeypatch.setattr(urllib.request, "urlopen", offline)
    pytest.importorskip("torchvision")
    assert main(["run", "fedavg", "--dataset", "cifar10"]) == 1
    err = capsys.readouterr().err
    assert "digits" in err and ".npz" in err and len(err.strip().splitlines()) == 1


def test_cuda_without_a_device_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["run", "fedavg", "--device", "cuda"]) == 2
    assert "use device='auto' or 'cpu'" in capsys.readouterr().err


def test_plan_explains_a_set_up_and_run_runs_it(capsys):
    assert (
        main(["plan", "fedlpa", "fedavg", "fens", "--dataset", "digits", "--set", "lr=0.02"]) == 0
    )
    text = capsys.readouterr().out
    assert all(
        word in text
        for word in ("not in this paper", "given here", "0.02", "fedavg", "section 4.1", "200")
    )
    assert main(["plan", "paper"]) == 2
    options = "--preset fedlpa --dataset digits --clients 3 --set epochs=1 --model mlp".split()
    capsys.readouterr()
    assert main(["run", "fedavg", *options, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["preset"], row["alpha"], row["clients"], row["holdout"]) == ("fedlpa", 0.1, 3, 0)


def test_list_names_everything_in_aligned_columns_and_doctor_works(capsys):
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
    assert len({len(row) for row in rows}) == 1, "the descriptions begin in one column"
    assert main(["doctor"]) == 0
    assert "training       works" in capsys.readouterr().out


def test_sweep_writes_a_row_for_each_cell(capsys, tmp_path):
    words = [
        *"sweep --methods fedavg --clients 2 --set epochs=1 --out".split(),
        str(tmp_path),
        "--alphas",
    ]
    assert main([*words, "0.1,1"]) == 0
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 3
    assert main([*words, "0.1,zero"]) == 2


def test_python_m_runs_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fedlab_nb", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("fedlab_nb", run_name="__main__")
    assert capsys.readouterr().out.startswith("fedlab-nb ")
