"""Play in the browser: tables for people and agents, served by `wotd serve` (docs/how-to/serve.md; extra `web`).

A function that cannot serve a client raises `limits.Refused`, with the reason, and changes nothing.
"""
