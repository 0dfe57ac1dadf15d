#!/bin/bash
# An example after Maxwell at DESY and the European XFEL; copy it and put in what your group uses.
# Nodes are given whole; the partitions of groups come first, those for all (allgpu) may send jobs away.
#: partition = "allgpu"
#: constraint = "GPUx1"
#: ranks_per_node = 1
#: exclusive = true
#: time = "4h"
#: mpi = "pmi2"
{{options}}

# Batch jobs begin without the modules of a login shell.
source /etc/profile.d/modules.sh 2>/dev/null || true
unset LD_PRELOAD
{{environment}}

{{work}}
