"""The game: its vocabulary, its rules on one record (`engine`), and batches of records (`game`)."""
