"""Special functions and how they are computed; those of `pointwise/` are names of `genesis` itself."""
