"""The libraries that use the environments, as they are released; `make test-clients` runs all of them."""
