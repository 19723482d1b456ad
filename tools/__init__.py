"""Tools that check the repository and generate documents. They belong to a checkout and are not installed."""
