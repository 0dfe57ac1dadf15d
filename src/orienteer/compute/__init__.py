"""Arrays on any device, kernels, and files that are never half written."""

import os

# Threads of compiled loops sleep while they wait.  By default they spin for milliseconds after every loop,
# which costs more than the loop itself if other programs need the cores.  The variable is read once, when the
# first loop is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
