"""Learning rates over time.

`base` what all share     `decays` functions of the step     `cycles` up and down, with the momentum     `plateau` by a
measure     `composed` several together     `state` what is saved fits
"""
