package simulator

// requiredOfReplays are the faults that a long row must meet where persons replay.
const requiredOfReplays = `
		a replay begins
		a replay is answered as foreseen: conflict
		a replay is answered as foreseen: fresh
		a replay is answered as foreseen: seen
		a replay is answered as foreseen: old
		what was missing takes effect in a replay
		an operator comes too late for a row
		an operator edits
		an operator has lost its turn
		an operator is killed
		an operator makes a row due
		an operator waits for another, or for the store
		an operator's edit comes too late
		answer to an operator lost
		what a person has made due takes effect
		what was edited takes effect
		a rebuild begins
		a switch begins
		a switch gives up
		a transaction is refused of the generation that was active
		a transaction is refused while a switch is under way
		the new generation is switched to
		who switches is killed
`
