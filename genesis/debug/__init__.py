"""Looking at recorded graphs: pictures, and the memory they hold.

`graph`   the nodes of a graph as plain data     `memory`   bytes saved by each line of the program
`layout`  where to put them                      `draw`     SVG, text and DOT
"""

from __future__ import annotations

from genesis.debug.draw import Drawing, draw
from genesis.debug.memory import SavedMemory, saved_memory

__all__ = ["Drawing", "SavedMemory", "draw", "saved_memory"]
