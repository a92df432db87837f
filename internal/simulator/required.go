package simulator

// required is what a long row of seeds must meet, by kind, a name a line: the
// fault points, the faults, every event and action in each of its forms, how
// deliveries ended, and how an entry was marked, what the store said of it and
// how its flight ended. What is met too seldom to be sure of is not here.
var required = map[string]string{
	"action": `
		begin, serial: false
		begin, serial: true
		report contended
		report serial
		report parallel
		cancel fetch, idle: false
		claim rows
		over
		unclaim
		report claim lost
		cancel fetch, idle: true
		commit
		commit, trimmed
		commit, trimmed, with rows
		commit, with rows
		done
		done, halted
		done, idle
		fetch
		flow, on: false
		flow, on: true
		kill
		release
		report backstop
		report committed
		report newer
		report full
		report full ends
		report newer ends
		report not ready
		report ready
		report budget
		report trial
		report trial ends
		report retry
		report stuck
		report unknown
		rollback
		run
		settle
		stop run, abort: false
		stop run, abort: true
		wake
	`,
	"crash at": `
		AfterCommit
		AfterEffect
		AfterFetch
		AfterMark
		AfterSettle
		BeforeCommit
		BeforeSettle
		CommitReplyLost
	`,
	"event": `
		claimed
		claimed nothing
		claimed, failed
		due
		ended, not committed claim lost
		ended, committed
		ended, not committed aborted
		ended, not committed contended
		ended, not committed down
		ended, not committed none
		ended, not committed permanent
		ended, not committed permanent, culprit named
		ended, not committed retry
		ended, not committed retry, culprit named
		ended, unknown
		fetched
		fetched nothing
		fetched nothing, more
		fetched, end
		fetched, failed
		fetched some, failed
		fetched, unanswered
		given
		lost
		marked contended
		marked copy busy
		marked down
		marked none
		ran
		ran, failed aborted none
		ran, failed contended none
		ran, failed down none
		ran, failed permanent discard
		ran, failed permanent duplicate
		ran, failed permanent park
		ran, failed permanent permanent
		ran, failed permanent unmet
		ran, failed retry retry
		revoking
		settled
		settled but for some
		stop
		stuck
		timer
	`,
	"fault": requiredOfReplays + `
		a late commit of a step refused
		a message goes on with steps that were changed
		a step after a crash between two
		a step after another of another life
		a step after another of the same life
		a step of a message whose last is a frozen process's
		the breaker closes
		the breaker opens
		the steps are changed
		the steps of a message are no longer its consumer's
		a sender dies
		a sender is frozen
		an intent is sent again under its key
		a person suppresses
		a person sends what was suppressed
		an intent has another content
		an intent is written a second time
		an intent is written by another at the same time
		an intent is written suppressed
		a person discards
		copy in the release before
		former identity: conflict
		former identity: seen
		a person ends a claim
		a person retries
		answer of a retake lost
		a call beside one whose lease has ended
		a call is left whose lease may be over
		a call is not made again whose end is not recorded
		a call is not made blindly
		a key that was charged for is used again
		a lease is not extended
		a person says that it was done
		a person says that it was not done
		answer of a call lost
		answer of a start lost
		call cancelled for a lost claim
		end of a call refused because of its claim
		the provider cannot tell
		the provider refuses before it looks at the key
		the provider says that it did not happen
		the provider says that it happened
		begin fails
		claim ended by an unknown commit
		claim fails
		claims are not given back
		commit refused because of a claim
		handler cancelled for a lost claim
		lease extended
		behind another of its line
		retaken after an unknown commit
		what a lost claim took is found
		what kills its process is parked
		commit fails
		commit refused
		commit unknown
		copy busy
		copy elsewhere
		copy under way in another process
		commit of a transaction that was ended
		idle transaction ended
		lane of a frozen process lost
		many deliveries left at once
		process frozen
		settled after another has the lane
		crash
		early timer
		fetch fails
		fetch is cancelled before the source was asked
		fetch of a run that may end is cancelled for another reason
		lanes are late
		source has more when a run would end
		stop while the source is asked whether it has more
		handler sticks
		handler sticks without end
		others go on beside a stuck handler
		skipped while the store is down, and nothing else would ask
		what is to be skipped waits for the store
		store away without end
		a store away without end is asked on
		a person skips
		a version asks again after those of its flight
		a version too far ahead
		rows freed
		marker removed
		row removed
		the reaper dies before it removes anything
		the reaper dies between two slices
		too old, and ends as parked
		too old, and ends as discarded
		too old, and ends as dead-lettered
		kept back behind what is too old
		too old, and known only when it is to wait behind another
		stream held elsewhere
		version missing for ever
		lane lost
		lane revoked
		lane of a rider revoked
		revocation ran out
		row refused
		run ends idle with what a newer release marked
		settle fails
		stop
		store down
		store down, and room to fetch
		transaction lingers
	`,
	"law": `
		law 1
		law 2
		law 3
		law 4
		law 5
		law 7
		law 8
		law 9
		law 10
		law 11
		law 12
		law 13
		law 14
		law 16
		C19
		A7
		B11
		C11
		E1
		E2
		E4
		E3, key
		E3, outcome
		E3, start
		E3, window
		B4
		B9
		trap T55
		trap T45
		trap T47
		case 1
		case 2
		case 3
		case 6
		case 7
		case 8
		case 10
		trap T113
		trap T95
		C5
		C5, budget
		C6
		C8
		C16
		D2
		D3
		D3, turns
		D5
		G2
		G4
		G5
		H3
		H4
		P1
		counts
		reports
	`,
	"settled": `
		ack as applied
		ack as conflict
		ack as dead_lettered
		ack as discarded
		ack as duplicate
		ack as parked
		ack as received
		ack as waiting
		claim as applied
		claim as discarded
		claim as duplicate
		claim as parked
		claim as waiting
		claim as stepped
		ack as skipped
		dead letter as not ended
		hand back as not ended
	`,
	"transition": `
		applied, already applied, committed
		applied, already applied, not committed
		applied, already applied, unknown
		applied, already dead_lettered, committed
		applied, already dead_lettered, not committed
		applied, already dead_lettered, unknown
		applied, already discarded, committed
		applied, already discarded, not committed
		applied, already discarded, unknown
		applied, already parked, committed
		applied, already parked, not committed
		applied, already parked, unknown
		applied, newer outcome 9, committed
		applied, newer outcome 9, not committed
		applied, newer outcome 9, unknown
		applied, busy, committed
		applied, busy, not committed
		applied, busy, unknown
		applied, conflict known, committed
		applied, conflict known, not committed
		applied, conflict known, unknown
		applied, conflict, committed
		applied, conflict, not committed
		applied, conflict, unknown
		applied, fresh, committed
		applied, fresh, not committed
		applied, fresh, unknown
		applied, gap, committed
		applied, gap, not committed
		applied, gap, unknown
		applied, old, committed
		applied, old, not committed
		applied, old, unknown
		applied, stale known, committed
		applied, stale, committed
		blocked, already waiting, committed
		blocked, fresh, committed
		blocked, fresh, not committed
		blocked, fresh, unknown
		claim, applied, gap, committed
		claim, applied, stale known, committed
		claim, applied, stale, committed
		claim, blocked, already waiting, committed
		claim, blocked, claim lost, committed
		claim, blocked, fresh, committed
		claim, overdue, already parked, committed
		claim, overdue, claim lost, committed
		claim, overdue, fresh, committed
		claim, overdue, fresh, unknown
		claim, applied, already applied, committed
		claim, applied, claim lost, committed
		claim, applied, fresh, committed
		claim, applied, fresh, not committed
		claim, applied, fresh, unknown
		claim, discarded, fresh, committed
		claim, duplicate, fresh, committed
		claim, parked, already parked, committed
		claim, parked, claim lost, committed
		claim, parked, fresh, committed
		claim, waiting, already waiting, committed
		claim, waiting, claim lost, committed
		claim, waiting, fresh, committed
		claim, waiting, fresh, unknown
		dead-lettered, already dead_lettered, committed
		dead-lettered, conflict, committed
		dead-lettered, fresh, committed
		dead-lettered, fresh, not committed
		dead-lettered, fresh, unknown
		discarded, already discarded, committed
		discarded, fresh, committed
		discarded, fresh, not committed
		discarded, fresh, unknown
		duplicate, already applied, committed
		duplicate, fresh, committed
		duplicate, fresh, not committed
		duplicate, fresh, unknown
		applied, already waiting, committed
		received, already applied, committed
		received, already waiting, committed
		received, conflict, committed
		received, fresh, committed
		received, fresh, unknown
		received, old, committed
		waiting, fresh, committed
		parked, already parked, committed
		parked, already parked, not committed
		parked, already parked, unknown
		parked, busy, committed
		parked, conflict, committed
		parked, fresh, committed
		parked, fresh, not committed
		parked, fresh, unknown
	`,
}
