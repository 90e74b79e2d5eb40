"""`python -m headwise` is the command line."""

from headwise.cli import main

main()
