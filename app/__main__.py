"""`python -m sharpwave`: the command line."""

from sharpwave.cli import main

if __name__ == "__main__":
    main()
