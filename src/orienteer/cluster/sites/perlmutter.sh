#!/bin/bash
# An example after Perlmutter at NERSC; copy it and put in what your project uses.
# Four GPUs a node; an account is needed, and jobs for GPUs say so by a constraint.
#: needs = ["account", "time"]
#: constraint = "gpu"
#: qos = "regular"
#: gpus_per_node = 4
#: cores_per_rank = 32
#: preemptible_options = ["--qos=preempt"]
#: node_folder = "/dev/shm"
{{options}}

# Ranks bind to the cores beside their GPU.
export SLURM_CPU_BIND=cores
{{environment}}

{{work}}
