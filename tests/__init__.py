"""The tests are a package, so that modules can import `tests.reference` and `tests.helpers`."""
