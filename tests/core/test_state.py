"""The record types for compiled code have the fields of the dtypes."""

import numpy as np
import pytest

from wotd_env.core.config import CONFIG, Config
from wotd_env.core.state import STATE, Record


@pytest.mark.parametrize(("dtype", "protocol"), [(STATE, Record), (CONFIG, Config)])
def test_a_record_type_has_the_fields_of_its_dtype(dtype: np.dtype, protocol: type):
    assert tuple(protocol.__annotations__) == dtype.names
