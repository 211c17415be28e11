"""What Airflow asks an installed package for: its type of connection, and the links that its tasks have."""

from importlib.metadata import version


def provider_info() -> dict[str, object]:
    """Named by the entry point `apache_airflow_provider`; read by Airflow before it imports anything else of Clew."""
    return {
        "package-name": "clew",
        "name": "Clew",
        "description": "Run projects of Clew, and wait for them.",
        "versions": [version("clew")],
        "connection-types": [
            {"connection-type": "clew", "hook-class-name": "clew.integrations.airflow_server.ClewHook"}
        ],
        "extra-links": ["clew.integrations.airflow.ClewRunLink"],
    }
