"""Our authors profile against the authors' recorded runs, number by number.

`python -m ib_core.reproduction` needs the recorded runs (`paper/` in the data folder) and the
data sets themselves; it prints what agrees and, for every number that does not, why.
"""
