"""The torchvision data sets without a network: small files in MNIST's format, every layout in memory, and the sentence
that explains missing files.
"""

import builtins
import urllib.error
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fedlab_nb.data import describe, load, vision
from fedlab_nb.errors import RunError

N_TRAIN = 40
N_TEST = 10


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty data folder, and no network."""
    import_datasets()
    monkeypatch.setenv("FEDLAB_NB_DATA", str(tmp_path))

    def offline(*args, **kwargs):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr("urllib.request.urlopen", offline)
    return tmp_path


def import_datasets():
    """`torchvision.datasets`: its import takes two seconds, which the collection of tests does without."""
    return pytest.importorskip("torchvision.datasets")


def draw_images(n, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)


def write_idx(folder):
    (folder / "raw").mkdir(parents=True)
    for part, n in (("train", N_TRAIN), ("t10k", N_TEST)):
        pixels = draw_images(n)[:, :28, :28, 0]
        header = np.array([0x803, n, 28, 28], ">i4").tobytes()
        (folder / "raw" / f"{part}-images-idx3-ubyte").write_bytes(header + pixels.tobytes())
        labels = (np.arange(n) % 10).astype(np.uint8)
        header = np.array([0x801, n], ">i4").tobytes()
        (folder / "raw" / f"{part}-labels-idx1-ubyte").write_bytes(header + labels.tobytes())


def check_dataset(name, pixels, labels):
    """train + public are the file's images in order, every tenth of them public."""
    data = load(name)
    public = [0, 10, 20, 30]
    private = [i for i in range(N_TRAIN) if i not in public]
    assert torch.equal(data.x_train, pixels[private])
    assert torch.equal(data.x_public, pixels[public])
    assert data.y_train.tolist() == [int(labels[i]) for i in private]
    assert len(data.x_test) == N_TEST
    assert data.note == "4 of 40 training images are held back as unlabelled public data."
    assert data.digest == describe(name).digest is not None
    assert load(name) is data
    return data


@pytest.mark.parametrize(("name", "sub"), [("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")])
def test_files_in_mnists_format_are_read(folder, name, sub):
    write_idx(folder / sub)
    data = check_dataset(
        name,
        torch.from_numpy(draw_images(N_TRAIN)[:, None, :28, :28, 0]).float() / 255,
        np.arange(N_TRAIN) % 10,
    )
    assert data.input_shape == (1, 28, 28)
    assert data.classes == 10


def lay_out_cifar10(x, y):
    return {"data": x, "targets": y.tolist(), "classes": [f"class {c}" for c in range(10)]}


def lay_out_cifar100(x, y):
    return {"data": x, "targets": y.tolist(), "classes": [str(c) for c in range(100)]}


def lay_out_svhn(x, y):
    return {"data": x.transpose(0, 3, 1, 2), "labels": y}


# as torchvision keeps images and labels in memory
LAYOUTS = {"cifar10": lay_out_cifar10, "cifar100": lay_out_cifar100, "svhn": lay_out_svhn}


@pytest.mark.parametrize("name", LAYOUTS)
def test_channels_come_first_for_every_layout(name, monkeypatch):
    def open_in_memory(name, source, part):
        n = {"train": N_TRAIN, "test": N_TEST}[part]
        return SimpleNamespace(**LAYOUTS[name](draw_images(n), np.arange(n) % 10))

    monkeypatch.setattr(vision, "open_or_download_dataset", open_in_memory)
    monkeypatch.setattr(vision, "hash_dataset_files_if_complete", lambda name: "of the files")
    data = check_dataset(
        name,
        torch.from_numpy(draw_images(N_TRAIN)).permute(0, 3, 1, 2).float() / 255,
        np.arange(N_TRAIN) % 10,
    )
    assert data.input_shape == (3, 32, 32)
    assert data.classes == vision.SOURCES[name].classes
    assert data.class_names[3] == ("class 3" if name == "cifar10" else "3")


def test_the_listed_files_are_those_that_torchvision_reads():
    for name, kind in (
        ("cifar10", import_datasets().CIFAR10),
        ("cifar100", import_datasets().CIFAR100),
    ):
        read = [file for file, _ in (*kind.train_list, *kind.test_list)] + [kind.meta["filename"]]
        assert sorted(vision.SOURCES[name].files) == sorted(read)
        assert vision.SOURCES[name].folder == kind.base_folder
    read = [
        file for part, (_, file, _) in import_datasets().SVHN.split_list.items() if part != "extra"
    ]
    assert sorted(vision.SOURCES["svhn"].files) == sorted(read)


@pytest.mark.parametrize("name", vision.SOURCES)
def test_without_a_network_one_sentence_says_so(name, capfd):
    with pytest.raises(RunError) as caught:
        load(name)
    text = str(caught.value)
    assert name in text
    assert "no network" in text
    assert "offline" in text
    assert "\n" not in text
    assert capfd.readouterr().out == ""
    facts = describe(name)
    assert facts.digest is None
    assert facts.n_train + facts.n_public == vision.SOURCES[name].n_train


def test_broken_files_are_refused(folder):
    write_idx(folder / "MNIST")
    path = folder / "MNIST/raw/train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(
        RunError,
        match=r"The files of 'mnist' in '.*' cannot be read \(.*\); delete them to download",
    ):
        load("mnist")


def test_without_torchvision_one_sentence_says_so(monkeypatch):
    real = builtins.__import__

    def import_without(name, *args, **kwargs):
        if name.startswith("torchvision"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", import_without)
    with pytest.raises(
        RunError,
        match="'mnist' cannot be read: torchvision; install what is missing, or offline, use",
    ):
        load("mnist")
