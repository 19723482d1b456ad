"""The game in the clothes of other projects; each module needs its own extra."""
