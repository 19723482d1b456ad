"""The speed of the environment, compared with other environments: `make bench`."""
