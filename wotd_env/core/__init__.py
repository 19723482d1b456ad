"""The game: its terms (`rules`, `actions`), its rules for one record (`engine`), and batches of records (`game`)."""
