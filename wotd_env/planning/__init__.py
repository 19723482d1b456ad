"""A turn worked out exactly, for any value of the positions that it may end in; and values made by hand."""
