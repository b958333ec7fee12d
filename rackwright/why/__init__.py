"""Why a node is in the state it is in: everything that is known, in the order in which one would ask."""
