"""The standard environments: `aec` for PettingZoo, and for Gymnasium `single` (one game) and `vector` (many games)."""
