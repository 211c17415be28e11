"""Databases: schema, migrations, and the implementations of the store protocols."""
