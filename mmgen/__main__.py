"""`python -m mmgen`, which launchers of several processes need."""

from .cli import main

main()
