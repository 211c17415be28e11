"""Mutation testing: small mistakes in the code, each of which some test has to notice."""
