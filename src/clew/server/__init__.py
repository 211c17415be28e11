"""HTTP: the API, who may use it, and the pages. Everything it says comes from the readers of `app`."""
