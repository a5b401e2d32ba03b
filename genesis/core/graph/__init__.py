"""Tensors and the graph that their history is.

`tensor`     what a tensor is                              `node`       the recorded graph
`history`, `conversions`  its methods that are no ops      `construct`, `size`  its making, its shape
`engine`     backward                                      `hooks`      functions that see gradients
`plan`, `seeds`, `delivery`  how it begins and ends
`modes`      no_grad and its relatives                     `autocast`   the open autocast region
`switches`   the lists that decide which way a call goes   `tracing`    host values that a trace reads again
`levels`     the open transforms                           `boundary`   the ways in and out of a transform
`saved`      what backward needs again                     `version`    writes in place are counted
`unknown`    the history of what has no derivative
`site`       lines of the user's program                   `lost`       where history was lost
`escapes`    what left the graph while someone watches     `printing`   how tensors look
`parameter`  leaves of modules                             `methods`    the methods that ops add, for type checkers
`generator`  random numbers                                `interrupts`, `quiet`  Ctrl-C, NumPy's warnings
"""
