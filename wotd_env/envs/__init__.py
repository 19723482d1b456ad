"""The standard environments: PettingZoo (`aec`), Gymnasium for one game (`single`) and many games (`vector`)."""
