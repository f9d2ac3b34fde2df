"""python -m minwise."""

from minwise.cli import main

if __name__ == "__main__":
    main()
