"""`python -m backend.cli`, which is how a running Etascope starts its other parts."""

from backend.cli import main

main()
