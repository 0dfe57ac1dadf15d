#!/bin/bash
#: about = "An example for Maxwell (DESY, European XFEL): whole nodes, modules; adapt it to your group."
#: partition = "allgpu"
#: gpus_per_node = 1
#: exclusive = true
#: time = "4h"
#: mpi = "pmi2"
# Here GPUs are a feature of whole nodes; a later --constraint replaces this one.
#SBATCH --constraint=GPUx{{gpus_per_node}}
{{options}}

# Batch jobs start without the modules of a login shell.
source /etc/profile.d/modules.sh 2>/dev/null || true
unset LD_PRELOAD
{{environment}}

{{work}}
