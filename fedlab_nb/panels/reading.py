"""What the controls of a panel say, as changes of its state; and their fit to the data that were chosen."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import several
from ..plots.characters import own_name
from ..plots.words import setting_of
from .controls import Controls
from .lab_view import LabSpec
from .panel_data import federate, named_clients, partition_of, samples
from .state import PanelState
from .views import Views


class Reading:
    """`changes(state)` reads the controls; `adapt()` fits them to the data set.

    adjusting: controls are being fitted just now; what they then say is no change of its own
    """

    def __init__(self, spec: LabSpec, controls: Controls, views: Views) -> None:
        self._spec, self._controls, self._views = spec, controls, views
        self._extra: dict[str, Any] = {}  # settings that no control has, and that every run gets
        self.adjusting = False

    def begin(self, methods: Iterable[str] | None, settings: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
        """Put the controls where a panel begins; `fixed` ones stay there. UsageError for a value that cannot be had."""
        controls = self._controls
        beside = self._spec.companions if methods is None else several("methods", methods)
        controls.methods.value = [name for name in beside if name != self._spec.method]
        self._extra = {name: value for name, value in settings.items() if not controls.takes(name)}
        for name, value in {**settings, **fixed}.items():
            if name not in self._extra or name in fixed:
                (controls.fix if name in fixed else controls.put)(name, value)
        controls.methods.ticked_first()

    @property
    def methods(self) -> tuple[str, ...]:
        """What Run runs: the lab's method first, then those that are ticked."""
        return tuple(filter(None, (self._spec.method, *self._controls.methods.value)))

    def changes(self, old: PanelState, fresh: bool = False) -> dict[str, Any]:
        """What the controls say now, as changes of the state `old`. The data are dealt out anew where that is asked for
        in another way, or with `fresh`; as long as there are none, they are not.
        """
        c, methods = self._controls, self.methods
        self._adjust(c.guess.offer, methods)
        runs = {self._spec.method, *methods}  # a setting of a method that does not run is none
        extra = {name: value for name, value in self._extra.items() if "." not in name or name.split(".")[0] in runs}
        settings = {**c.settings(), **extra}
        federation, partition = old.federation, old.partition
        if fresh or federation is not None:
            partition = partition_of(settings)
            if fresh or partition != old.partition:
                federation = federate(**partition)
                setting = setting_of({**partition, "clients": federation.clients})
                called = [own_name(k, setting) for k in range(federation.clients)]
                self._adjust(self._views.offer, called, federation.dataset.class_names)
        return {
            "settings": settings,
            "knobs": c.knobs.value if c.knobs else {},
            "methods": methods,
            "epochs": c.epochs.value,
            "guess": c.guess.committed,
            "federation": federation,
            "partition": partition,
            **self._views.look,
        }

    def adapt(self) -> None:
        """Fit the controls to the chosen data set, which is loaded."""
        name, asked = self._controls.data, "partition" in self._extra
        self._adjust(self._controls.adapt, samples(name), 0 if asked else named_clients(name))

    def _adjust(self, call: Callable, *arguments: Any) -> None:
        self.adjusting = True
        try:
            call(*arguments)
        finally:
            self.adjusting = False
