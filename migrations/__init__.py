"""The database's history: how each version of the tables becomes the next."""
