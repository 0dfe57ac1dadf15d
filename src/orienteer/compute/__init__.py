"""Arrays on any device, kernels, and files that are never half written."""

import os

# Threads of compiled loops wait asleep.  By default they spin for milliseconds after every loop, which costs
# more than the loop itself where other programs want the cores.  Read once, when the first loop is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
