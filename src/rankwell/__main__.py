"""`python -m rankwell` is the command `rankwell`."""

from rankwell.cli.app import main

if __name__ == "__main__":
    main()
