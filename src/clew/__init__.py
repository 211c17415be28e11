"""Clew runs data pipelines on Spark and can follow any number in their output back to the rows it came from."""

__version__ = "0.1.0"
