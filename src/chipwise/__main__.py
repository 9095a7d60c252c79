"""`python -m chipwise` is the same as `chipwise`."""

from chipwise.cli.main import main

if __name__ == "__main__":
    main()
