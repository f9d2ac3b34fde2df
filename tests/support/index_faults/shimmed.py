"""The process that forks children with the shim; started by `faults.py` with LD_PRELOAD.

What every child would otherwise do anew is done here once: importing, and writing down the steps.
"""

import gc
import importlib
import os
import socket
import sys

from support.index_faults.children import serve
from support.index_faults.steps import script

__all__: list[str] = []

# NumPy imports the last one when it is asked first for unique elements.
MODULES = ("support.index_faults.acts", "support.index_faults.programs", "numpy.ma")

if __name__ == "__main__":
    for module in MODULES:
        importlib.import_module(module)
    script()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)
