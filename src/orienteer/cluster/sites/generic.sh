#!/bin/bash
#: about = "Any cluster with Slurm; asks for nothing that you have not asked for."
#: mpi = "pmi2"
{{options}}

{{environment}}

{{work}}
