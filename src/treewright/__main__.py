"""`python -m treewright`."""

from treewright.cli.main import main

main()
