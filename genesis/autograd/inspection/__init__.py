"""Looking at a program that runs: lost gradients, bad values, single nodes, time.

`explain`   why is there no gradient?            `anomaly`      where is the first bad value?
`replay`    a backward recorded, step by step    `profiler`     where does the time go?
`strong_zero`   no NaN from branches not taken
"""
