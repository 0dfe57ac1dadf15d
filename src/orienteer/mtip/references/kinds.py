"""The kinds of references, by name."""

from typing import Literal, TypeAlias

# Made anew; or kept by every rank, once on every node, once over a group of nodes, or on the disk of a node.
Kind: TypeAlias = Literal["recompute", "replicate", "share", "distribute", "disk"]
# What a setting may ask for.
Wish: TypeAlias = Literal["auto", "recompute", "replicate", "share", "distribute", "disk"]
