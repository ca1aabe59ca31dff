"""`python -m banditune`."""

from banditune.cli import main

if __name__ == "__main__":
    main()
