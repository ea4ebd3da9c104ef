"""A lab as its `lab.toml` declares it: what the panel holds, the words of its views, and the views' controls.

    method = "fens"                     companions, knobs, settings, extras, first: as in `LabSpec`
    [views.trust]                       of the view with that name: title, ready, empty, work_label, as in `LabView`
    title = "Who is trusted"
    [views.trust.controls.round]        a control, then the view's attribute `round`
    kind = "SelectionSlider"            a class of ipywidgets; all that is not named here are its arguments
    description = "Round"               the label in front;   tooltip: what it is for
    width = 250                         of all of it, in pixels or "auto";   label_width: of its description alone
    boxed = true                        it is no control of the view itself: it moves others, which redraw
    options = [["one", 1], ["two", 2]]  words and values, or values alone
    play = { interval = 450, … }        arguments of a `Play` that replays the slider, then the view's attribute `play`

So people can edit and translate all that a lab's controls say without reading Python; `View` and `spec` read it here.
"""

from typing import Any

import ipywidgets as widgets

from ..declared import declared
from ..errors import UsageError
from ..methods import METHODS
from ..panels.lab_view import Extra, LabSpec, LabView
from ..symbols import explained


def file_of(module: str) -> str:
    """The `lab.toml` beside a module: 'fedlab_nb.labs.fens.lab' -> 'labs/fens/lab.toml'."""
    return "/".join([*module.split(".")[1:-1], "lab.toml"])


def spec(module: str, *views: type[LabView]) -> LabSpec:
    """The lab whose `module` asks, with its `views`."""
    of = {key: tuple(v) if isinstance(v, list) else v for key, v in declared(file_of(module)).items() if key != "views"}
    extras = tuple(Extra(**{**extra, "options": tuple(map(tuple, extra["options"]))}) for extra in of.pop("extras", ()))
    return LabSpec(name=of["method"], views=views, extras=extras, **of)


class View(LabView):
    """A view with the words and controls that the `lab.toml` beside its module has for its `name`.

    `options` of those controls whose choices the code knows: {control: values, or (words, value) pairs}.
    """

    def __init_subclass__(cls, name: str) -> None:
        cls.name, cls.place = name, f"views.{name} in {file_of(cls.__module__)}"
        words = dict(declared(file_of(cls.__module__))["views"][name])
        cls.declared = words.pop("controls", {})
        for word, text in words.items():
            if word not in LabView.__annotations__:
                raise UsageError(f"{cls.place} says {word!r}; it may say {', '.join(LabView.__annotations__)}.")
            setattr(cls, word, text)

    def __init__(self, **options: Any) -> None:
        self.controls = []
        for name, of in self.declared.items():
            try:
                self._add(name, **of, **({"options": options[name]} if name in options else {}))
            except Exception as error:
                text = f"The control {name!r} of {self.place} cannot be made: {error}."
                raise UsageError(f"{text} See labs/views.py for what it may say.") from None

    def _add(
        self, name: str, kind: str, width: Any = None, label_width: Any = "initial", boxed: bool = False,
        play: Any = None, **traits: Any,
    ) -> None:  # fmt: skip
        wide, label = (f"{size}px" if isinstance(size, int) else size for size in (width, label_width))
        traits["layout"] = {"width": wide}
        traits["style"] = {"description_width": label, **traits.get("style", {})}
        if "options" in traits:
            traits["options"] = [tuple(o) if isinstance(o, list) else o for o in traits["options"]]
        if "tooltip" in traits:
            method = METHODS.get(declared(file_of(type(self).__module__)).get("method"))
            owner = method.info.title if method else ""
            traits["tooltip"] = explained(traits["tooltip"], traits.get("description", ""), owner)
        if unknown := traits.keys() - set(getattr(widgets, kind).class_trait_names()):
            raise UsageError(f"{kind} knows no {' or '.join(sorted(unknown))}")
        control = getattr(widgets, kind)(**traits)
        setattr(self, name, control)
        if play is not None:
            trait = "index" if hasattr(control, "index") else "value"
            ends = {"min": getattr(control, "min", 0), "max": getattr(control, "max", 0)}
            self.play = widgets.Play(value=getattr(control, trait), **ends, **play)
            widgets.jslink((self.play, "value"), (control, trait))
            self.controls.append(widgets.HBox([self.play]))  # boxed: the slider that it moves redraws
        self.controls.append(widgets.HBox([control]) if boxed else control)
