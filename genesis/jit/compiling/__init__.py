"""`genesis.compile`: functions that are traced once, and then run as one call.

`function`  a compiled function: which calls are traced, which run as they are
`tracing`   how one graph is made, and what is known for the next
`options`   what is asked for besides
`reasons`   what it tells about itself
`effects`   what a function does besides computing with tensors; `stores` and `writers` find it in code, `pure` knows functions
            in C, `young` what was made meanwhile
`reads`     what it reads of the outside: `unnamed` where its code does not say so by name; `unknown` looks whether a trace
            knows what a statement changes; `granted` are the guards of all that
`surroundings` what it can reach, which a trace leaves as it was
`slots`     what it sets and goes on from at the next call: arguments and results of a graph; `library`: functions of Python's
            that a trace is told of
`statements` what Python does at each call, taken out of the code where `taken` asks for it; `hosts` keeps it, `order` says when
            it is done, `words` reads it, `leaves` is what it reads; `questions`, `containers`: what numbers and arguments
            are made of
`joint`     a function and its gradient in one trace, as two programs; `flow` joins them; `results` what it returned
`values`    values that Python needs: decisions; `segments` computes them first
`entries`   one graph, ready to be called
`calling`   the Python around a graph, written for it: `checks` asks whether all is as it was, `numbers` asks the host;
            `deciding`: arguments that Python only decides by
`text`      Python functions while they are written; `identity` asks them of many objects at once
"""
