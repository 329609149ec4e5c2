"""Where the arctan solve starts; `arctan.py` derives it."""

#: The start is ``SCALE*sqrt(T/2 / (t + SHARE_OF_M*m + SHARE_OF_U*max(u, 0)/t))``, t^3 = T/2.
SCALE, SHARE_OF_M, SHARE_OF_U = 1.29574, 2.33739, 2.55336

#: A float's bits, read as an integer, are nearly linear in its logarithm; this centres the error.
OFF_BY = 0.0389
#: The bits of 1. Twice this and a number's bits, divided by three, are the bits of its cube root
#: to 3 %.
ONE_AS_INTEGER = 2**23 * (127 - OFF_BY)
