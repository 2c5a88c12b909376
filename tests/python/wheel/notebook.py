# SPDX-License-Identifier: MIT
"""Runs a notebook from top to bottom in Jupyter's kernel: notebook.py FILE. The output of a cell must match its
comments ("# prints: ..."). Run by scripts/test_wheel."""
import re
import sys

import nbclient
import nbformat


def main():
    notebook = nbformat.read(sys.argv[1], as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in cells:
        printed = "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout").splitlines()
        assert printed == re.findall(r"# prints: (.*)", cell.source), (cell.source, printed)
    print(len(cells), "cells run and print what the page says")


if __name__ == "__main__":
    main()
