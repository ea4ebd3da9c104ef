"""The torchvision datasets without a network: small files in each dataset's own format, and what is said when there
are none.
"""

import builtins
import hashlib
import pickle
import urllib.error

import numpy as np
import pytest
import torch

from fedlab_nb.data import describe, load, vision
from fedlab_nb.errors import RunError

N_TRAIN, N_TEST = 40, 10


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty data folder, and no way out of this machine."""
    datasets()
    monkeypatch.setenv("FEDLAB_NB_DATA", str(tmp_path))

    def offline(*args, **kwargs):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr("urllib.request.urlopen", offline)
    return tmp_path


def datasets():
    """`torchvision.datasets`: its import takes two seconds, which the collection of tests does without."""
    return pytest.importorskip("torchvision.datasets")


def images(n, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)


def write_idx(folder):
    (folder / "raw").mkdir(parents=True)
    for part, n in (("train", N_TRAIN), ("t10k", N_TEST)):
        pixels = images(n)[:, :28, :28, 0]
        header = np.array([0x803, n, 28, 28], ">i4").tobytes()
        (folder / "raw" / f"{part}-images-idx3-ubyte").write_bytes(header + pixels.tobytes())
        labels = (np.arange(n) % 10).astype(np.uint8)
        header = np.array([0x801, n], ">i4").tobytes()
        (folder / "raw" / f"{part}-labels-idx1-ubyte").write_bytes(header + labels.tobytes())


def write_cifar(folder, kind, monkeypatch):
    """Batches as the archive holds them, with the checksums of these small ones put in place of the published."""
    folder.mkdir(parents=True)
    key = "fine_labels" if kind.__name__ == "CIFAR100" else "labels"
    classes = 100 if key == "fine_labels" else 10

    def write(name, content):
        data = pickle.dumps(content)
        (folder / name).write_bytes(data)
        return [name, hashlib.md5(data).hexdigest()]

    def batch(name, n):
        rows = images(n).transpose(0, 3, 1, 2).reshape(n, -1)
        return write(name, {"data": rows, key: [i % classes for i in range(n)]})

    names = [name for name, _ in kind.train_list]
    monkeypatch.setattr(kind, "train_list", [batch(name, N_TRAIN // len(names)) for name in names])
    monkeypatch.setattr(kind, "test_list", [batch(kind.test_list[0][0], N_TEST)])
    meta = write(kind.meta["filename"], {kind.meta["key"]: [f"class {c}" for c in range(classes)]})
    monkeypatch.setattr(kind, "meta", {**kind.meta, "md5": meta[1]})


def write_svhn(folder, monkeypatch):
    scipy_io = pytest.importorskip("scipy.io")
    folder.mkdir(parents=True)
    split_list = {}
    for part, n in (("train", N_TRAIN), ("test", N_TEST)):
        path = folder / f"{part}_32x32.mat"
        scipy_io.savemat(path, {"X": images(n).transpose(1, 2, 3, 0), "y": (np.arange(n) % 10 + 1)[:, None]})
        split_list[part] = ["", path.name, hashlib.md5(path.read_bytes()).hexdigest()]
    monkeypatch.setattr(datasets().SVHN, "split_list", split_list)


def check(name, pixels, labels):
    """train + public are the file's images in order, every tenth of them public."""
    data = load(name)
    public = [0, 10, 20, 30]
    private = [i for i in range(N_TRAIN) if i not in public]
    assert torch.equal(data.x_train, pixels[private]) and torch.equal(data.x_public, pixels[public])
    assert data.y_train.tolist() == [int(labels[i]) for i in private] and len(data.x_test) == N_TEST
    assert data.note == "4 of 40 training images are held back as unlabelled public data."
    assert data.digest == describe(name).digest is not None and load(name) is data
    return data


@pytest.mark.parametrize(("name", "sub"), [("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")])
def test_mnist_files(folder, name, sub):
    write_idx(folder / sub)
    data = check(name, torch.from_numpy(images(N_TRAIN)[:, None, :28, :28, 0]).float() / 255, np.arange(N_TRAIN) % 10)
    assert data.input_shape == (1, 28, 28) and data.classes == 10


def test_cifar10_files(folder, monkeypatch):
    write_cifar(folder / "cifar-10-batches-py", datasets().CIFAR10, monkeypatch)
    pixels = torch.from_numpy(np.concatenate([images(8)] * 5)).permute(0, 3, 1, 2).float() / 255
    data = check("cifar10", pixels, np.tile(np.arange(8), 5))
    assert data.input_shape == (3, 32, 32) and data.class_names[3] == "class 3"


def test_cifar100_files(folder, monkeypatch):
    write_cifar(folder / "cifar-100-python", datasets().CIFAR100, monkeypatch)
    pixels = torch.from_numpy(images(N_TRAIN)).permute(0, 3, 1, 2).float() / 255
    assert check("cifar100", pixels, np.arange(N_TRAIN)).classes == 100


def test_svhn_files(folder, monkeypatch):
    write_svhn(folder / "SVHN", monkeypatch)
    labels = (np.arange(N_TRAIN) % 10 + 1) % 10  # the file's label 10 is the digit 0
    data = check("svhn", torch.from_numpy(images(N_TRAIN)).permute(0, 3, 1, 2).float() / 255, labels)
    assert data.input_shape == (3, 32, 32)


@pytest.mark.parametrize("name", vision.SOURCES)
def test_offline(name, capfd):
    with pytest.raises(RunError) as caught:
        load(name)
    text = str(caught.value)
    assert name in text and "no network" in text and "offline" in text and "\n" not in text
    assert capfd.readouterr().out == ""
    facts = describe(name)
    assert facts.digest is None and facts.n_train + facts.n_public == vision.SOURCES[name].n_train


def test_broken_files(folder):
    write_idx(folder / "MNIST")
    path = folder / "MNIST/raw/train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RunError, match=r"The files of 'mnist' in '.*' cannot be read \(.*\); delete them to download"):
        load("mnist")


def test_without_torchvision(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("torchvision"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RunError, match="'mnist' cannot be read: torchvision; install what is missing, or offline, use"):
        load("mnist")
