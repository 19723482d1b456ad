"""The server of `wotd serve`: people and agents play at tables in the browser.

The server needs the extra `web`. Its manual is docs/how-to/serve.md.

A function that refuses a client's request raises `refused.Refused` with the reason, and changes nothing.
"""
