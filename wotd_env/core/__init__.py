"""The game: `rules` and `actions` define its terms, `engine` plays one record, and `game` plays batches of records."""
