"""The game: its vocabulary, its rules over one record (`engine`), and batches of records (`game`)."""
