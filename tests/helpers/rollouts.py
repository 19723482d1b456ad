"""What rollouts promise."""

import numpy as np
from numpy.typing import NDArray

from wotd_env.benchmark.drawing import ERROR, SHARE


def precise(equity: NDArray[np.float32], error: NDArray[np.float32]) -> bool:
    """Return whether all standard errors, (M, A), are as small as they should be."""
    known = np.isfinite(equity)
    regret = np.max(equity, 1, where=known, initial=-1)[:, None] - equity
    return bool((error <= np.maximum(ERROR, SHARE * regret) * (1 + 1e-5))[known].all())
