"""What connects the game to other projects; each module needs the extra of its name."""
