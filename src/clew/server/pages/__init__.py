"""The web pages: view models built from readers, and templates. Business rules live in lower layers."""
