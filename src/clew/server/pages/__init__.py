"""The web pages: what readers give, as view models, in templates. Rules live below, never here."""
