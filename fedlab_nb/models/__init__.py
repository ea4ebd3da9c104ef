"""The client architectures: networks with `.features(x)` and `.classifier`, from a name and the shape of the input.

    model = build("cnn", (1, 28, 28), classes=10, generator=rng.make_torch_generator(seed, "init", k))
    model(x)            # logits [N, C]
    model.features(x)   # what the classifier reads [N, D]

`network.py` defines the structure of every model; `plain.py` and `resnet.py` hold the architectures, `build.py` the
table of their names, and `state.py` the part of a model that is sent. Pretrained weights, dropout and attention are
left out.
"""

from .build import (
    MENU,
    MODELS,
    add_model,
    build,
    build_untrained_network_of_first_model,
    choose_default_model_name,
    is_added_model,
    parse_architecture,
    parse_models,
)
from .network import Network, Normalise, prepend_input_normalisation_in_place
from .state import copy_model_state, count_parameters, load_state
