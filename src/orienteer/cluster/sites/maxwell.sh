#!/bin/bash
#: about = "An example after Maxwell (DESY, European XFEL): whole nodes, modules; put in what your group has."
#: partition = "allgpu"
#: gpus_per_node = 1
#: exclusive = true
#: time = "4h"
#: mpi = "pmi2"
# GPUs are a feature of whole nodes here; another --constraint, which comes later, takes its place.
#SBATCH --constraint=GPUx{{gpus_per_node}}
{{options}}

# Batch jobs begin without the modules of a login shell.
source /etc/profile.d/modules.sh 2>/dev/null || true
unset LD_PRELOAD
{{environment}}

{{work}}
