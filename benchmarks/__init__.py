"""Speed of the environment beside that of its peers: `make bench`."""
