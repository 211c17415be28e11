"""Who may do what over HTTP: roles, tokens, browser sessions, and the record of who has read which rows."""
