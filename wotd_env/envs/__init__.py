"""The standard environments: PettingZoo (`aec`), Gymnasium for one game (`single`) and for many (`vector`)."""
