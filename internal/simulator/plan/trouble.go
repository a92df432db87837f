package plan

// Trouble is a kind of fault that a plan can switch on.
type Trouble uint8

// Kinds of faults. Each run has only some of the kinds, so that rare combinations of two kinds also happen.
const (
	TroubleCrash Trouble = iota
	TroubleStop
	TroubleRevoke
	TroubleLose
	TroubleOutage
	TroubleElsewhere
	TroubleBegin
	TroubleCommit
	TroubleUnknown
	TroubleSettle
	TroubleFetch
	TroubleHandler
	TroubleStuck
	TroubleContent
	TroubleCopies
	TroubleTimer
	TroubleRow
	TroubleFreeze
	TroubleClaim
	TroublePerson
	TroubleDue
	Troubles
)
