"""Clew inside of orchestrators: an operator for Airflow, an entry for Dagster Pipes. Nothing else imports these."""
