"""The exact plan of a turn, given any value of the positions after it; hand-made and learned values."""
