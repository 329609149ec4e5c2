"""Bundles of results in and out of the database."""
