"""`python -m backend.cli`, which is how a running Etascope starts its other parts."""

from backend.cli import main

if __name__ == "__main__":
    main()
