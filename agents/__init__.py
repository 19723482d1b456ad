"""What learns: self-play, the network, and what is made of a training run. Used from a checkout, never installed."""
