"""What keeps the project in order: checks and generated documents. Part of a checkout, never installed."""
