"""Tests with released libraries that use the environments; `make test-clients` runs all of them."""
