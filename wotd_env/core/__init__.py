"""The game. `rules` and `actions` define its terms, `engine` plays one game, and `game` plays batches of games."""
