#!/bin/bash
#: about = "An example for Perlmutter (NERSC): four GPUs per node; needs an account to charge."
#: needs = ["account", "time"]
#: constraint = "gpu"
#: qos = "regular"
#: gpus_per_node = 4
#: cores_per_rank = 32
#: preemptible_options = ["--qos=preempt"]
#: node_folder = "/dev/shm"
{{options}}

# Bind ranks to the cores near their GPU.
export SLURM_CPU_BIND=cores
{{environment}}

{{work}}
