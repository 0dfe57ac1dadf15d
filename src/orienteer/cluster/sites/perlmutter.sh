#!/bin/bash
#: about = "An example after Perlmutter (NERSC): four GPUs a node, an account that pays."
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
