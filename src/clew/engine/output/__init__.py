"""Outputs: staged while a job runs, published when everything else has succeeded, registered as versions."""
