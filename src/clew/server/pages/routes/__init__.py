"""Addresses of pages and what answers there."""
