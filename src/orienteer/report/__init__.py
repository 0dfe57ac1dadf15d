"""One page with everything about a run, and a script that opens its maps in ChimeraX."""
