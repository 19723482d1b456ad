"""The weights of bundled networks, as files for wotd.js."""

import json

import numpy as np

from tools.wasm.exports import NETWORK
from wotd_env import Rules, models
from wotd_env.core.rules import ABOUT
from wotd_env.planning import learned


def weights(rules: Rules) -> bytes:
    """Return the network of the bundled `td` for these rules: a line of JSON with the rules, then the bytes of NETWORK.

    Raises:
        ValueError: if there is no bundled network for the rules.
    """
    value = learned.load(models.find("td", rules))
    memory = np.zeros(1, NETWORK)
    memory["features"] = value.features
    for name, array in value.network._asdict().items():
        memory[name][0][tuple(map(slice, array.shape))] = array
    unused = memory["rows"].nbytes - value.network.rows.nbytes
    names = [name for name, known in ABOUT.items() if known.affects_values and name != "colors"]
    about = {name: getattr(rules, name) for name in names}
    return json.dumps(about).encode() + b"\n" + memory.tobytes()[: memory.nbytes - unused]
