"""The server of `wotd serve`: people and agents play at tables in the browser.

It needs the extra `web`. docs/how-to/serve.md explains its use.

A function that refuses a client's request raises `limits.Refused` with the reason, and changes nothing.
"""
