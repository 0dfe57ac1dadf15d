"""What scatters: atoms, analytic bodies, conformations and their solvent."""
