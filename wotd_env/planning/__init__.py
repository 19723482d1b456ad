"""Plan a turn exactly, with any value function of the positions after it; hand-made and learned value functions."""
