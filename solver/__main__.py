"""`python -m solver` is `truc`."""

from solver.cli import main

main(prog_name="truc")
