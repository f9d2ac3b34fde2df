"""Process that forks children with the shim; started by `shim.py` with LD_PRELOAD.

It does once what every child would repeat: importing modules and building the script of steps.
"""

import gc
import importlib
import os
import socket
import sys

from support.index_faults.children import serve
from support.index_faults.steps import script

__all__: list[str] = []

# NumPy imports numpy.ma at the first call of unique.
MODULES = ("support.index_faults.step_runs", "support.index_faults.file_programs", "numpy.ma")

if __name__ == "__main__":
    for module in MODULES:
        importlib.import_module(module)
    script()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)
