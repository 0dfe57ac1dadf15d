#!/bin/bash
#: about = "Any cluster with Slurm; adds nothing to what you ask for."
#: mpi = "pmi2"
{{options}}

{{environment}}

{{work}}
