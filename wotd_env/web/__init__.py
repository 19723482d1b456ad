"""Play in the browser: tables for people and agents, served by `wotd serve` (docs/serve.md; extra `web`)."""
