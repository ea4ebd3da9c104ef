"""The client architectures: networks with `.features(x)` and `.classifier`, from a name and the shape of the input.

    model = build("cnn", (1, 28, 28), classes=10, generator=rng.generator(seed, "init", k))
    model(x)            # logits [N, C]
    model.features(x)   # what the classifier reads [N, D]

`network.py` says what every model is made of; `plain.py` and `resnet.py` hold the architectures,
`build.py` has the table of names, `state.py` what is sent of a model. Pretrained weights, dropout and attention are
left out.
"""

from .build import (
    MENU,
    MODELS,
    add_model,
    build,
    build_from_text,
    choose_default_model,
    is_own_model,
    parse_architecture,
    parse_models,
)
from .network import Network, Normalise, normalise_inputs
from .state import load_state, model_state, parameter_count
