"""What a panel stands on: the chosen data, dealt out among the clients as the sliders say."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from .. import data
from ..draw import Picture
from ..draw.words import data_size, plural
from ..errors import UsageError
from .controls import Controls
from .estimate import model_bytes
from .scene import Scene, words

PARTITION_SETTINGS = ("alpha", "clients", "seed", "partition", "classes_per_client", "spurious", "tint")


class Ground:
    """`federation` is the present one of the first seed, or None while there is no data."""

    def __init__(self, controls: Controls, scene: Scene, extra: dict[str, Any]) -> None:
        self._controls, self._scene, self._extra = controls, scene, extra
        self.federation: Any = None

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of `study.job`: the controls' and those that hold for the whole panel."""
        return {**self._controls.settings(), **self._extra}

    def adapt(self) -> None:
        """Fit the controls to the chosen data set, which is loaded, and deal it out."""
        self.federation = None
        self._controls.adapt(len(data.load(self._controls.data).y_train))
        self.deal()

    def deal(self) -> None:
        """Deal the data out anew: milliseconds, so that it can follow a slider."""
        settings = self.settings()
        options = {key: settings[key] for key in PARTITION_SETTINGS if key in settings}
        if isinstance(options.get("spurious"), str):
            options["spurious"] = [int(k) for k in options["spurious"].split(",") if k]
        self.federation = data.federate(settings["dataset"], **options)

    @property
    def class_names(self) -> tuple[str, ...]:
        return () if self.federation is None else tuple(self.federation.dataset.class_names)

    @property
    def samples(self) -> int | None:
        return None if self.federation is None else len(self.federation.dataset.y_train)

    def facts(self) -> str:
        """Skew and upload in a sentence, before anything is trained."""
        skew, dataset, clients = self.federation.skew, self.federation.dataset, self.federation.clients
        size = model_bytes(self.settings().get("model", "auto"), dataset.input_shape, dataset.classes)
        return (
            f"A client effectively sees {skew.effective_classes:.1f} of {dataset.classes} classes (skew "
            f"{skew.jensen_shannon:.2f}). Uploading its model once costs it {data_size(size)}, all "
            f"{plural(clients, 'client')} {data_size(size * clients)}."
        )

    def words(self) -> str:
        """The partition's setting in words: that of the first seed."""
        return words({**self.settings(), "seeds": 1})

    def picture(self, client: int | None, klass: int | None = None, stored: Any = None) -> Picture:
        if self.federation is None:
            raise UsageError("There is no data to draw; choose a data set first.")
        return self._scene.partition(self.federation, self.words(), client, klass, stored)


def loading(name: str) -> Generator[None, None, None]:
    """Load a data set as a job of the worker."""
    data.load(name)
    yield
