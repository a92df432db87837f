package matrix

import (
	"github.com/semel-go/semel/faults"
)

// reason is the reason why a cell cannot run. Every cell without a reason runs.
type reason uint8

const (
	possible reason = iota
	keysOnly
	noReceipt
	noAnswer
	noUserCode
	noCall
	otherPoint
	noStatement
	noNetwork
	noServer
	ownMemory
	oneWriter
	sameAsCut
	asksAgain
	otherProtocol
	reasons // the number of reasons
)

// String returns the reason as a sentence.
func (r reason) String() string {
	return [reasons]string{
		possible:      "The cell runs.",
		keysOnly:      "Redis stores leased keys only; this strategy needs transactions.",
		noReceipt:     "This strategy acks a message after its effect, so no batch only stores messages.",
		noAnswer:      "Only strategies of `consumer.NewCalling` pass the point after the answer of a call.",
		noUserCode:    "At this point only Semel and its store run, and no code of the user that could panic or end its goroutine.",
		noCall:        "No call returns at this point, so no call can return an error.",
		otherPoint:    "This fault hits COMMIT, or its reply, and that is another point.",
		noStatement:   "No statement runs at this point.",
		noNetwork:     "No network connects the process with this store.",
		noServer:      "This store has no server that could restart.",
		ownMemory:     "This store ends with its process, and no other process can use it.",
		oneWriter:     "A frozen process keeps the only write lock of the file, so no other process can continue its work.",
		sameAsCut:     "A call of this store fails when its connection is cut; the three kinds of cuts run this cell.",
		asksAgain:     "The end of a leased key is requested again until the store answers, so the point after a lost reply is not passed.",
		otherProtocol: "The test proxy, which cuts connections at a message, reads the protocol of PostgreSQL only.",
	}[r]
}

// impossible returns the reason why a cell cannot run, or the value possible if the cell runs.
func (c cell) impossible() reason {
	switch {
	case c.Base == inRedis && c.Strategy != leasedKey:
		return keysOnly
	case c.Point.receipt() && !c.Strategy.acksOnReceipt():
		return noReceipt
	case c.Point.is(faults.AfterCall) && !c.Strategy.answers():
		return noAnswer
	case c.Kind.inUserCode() && !c.userCode():
		return noUserCode
	case c.Kind == fails:
		return c.cannotFail()
	case c.Kind.cut():
		return c.cannotCut()
	case c.Strategy == leasedKey && c.Point.is(faults.CommitReplyLost):
		return asksAgain
	case c.Kind == restarts && !c.Base.isPostgres() && c.Base != inRedis:
		return noServer
	case (c.Kind == killed || c.Kind == frozen) && c.Base == inMemory:
		return ownMemory
	case c.Kind == frozen && c.Base == inSQLite && c.inTransaction():
		return oneWriter
	}
	return possible
}

// userCode reports whether the user's code (the source, the handler or a call) runs at the point.
func (c cell) userCode() bool {
	return !c.Point.receipt() && c.Point.is(faults.AfterFetch, faults.AfterMark, faults.AfterCall, faults.AfterEffect, faults.BeforeSettle, faults.AfterSettle)
}

func (c cell) cannotFail() reason {
	switch {
	case c.Point.is(faults.AfterCommit):
		return noCall
	case c.Base.isPostgres() && c.Point.is(faults.AfterMark, faults.BeforeCommit, faults.CommitReplyLost):
		return sameAsCut
	}
	return possible
}

func (c cell) cannotCut() reason {
	switch statement := c.Point.is(faults.AfterMark) || c.Point.is(faults.AfterEffect) && c.Strategy.commits(); {
	case c.Base == inRedis:
		return otherProtocol
	case !c.Base.isPostgres():
		return noNetwork
	case c.Kind == statementCut && !statement:
		return noStatement
	case c.Kind == commitCut && !c.Point.is(faults.BeforeCommit), c.Kind == replyCut && !c.Point.is(faults.CommitReplyLost):
		return otherPoint
	}
	return possible
}

// inTransaction reports whether a transaction of the store is open at the point.
func (c cell) inTransaction() bool {
	switch {
	case c.Point.receipt():
		return c.Point.is(faults.AfterMark, faults.BeforeCommit)
	case c.Strategy == calling:
		return c.Point.is(faults.AfterEffect, faults.BeforeCommit)
	case c.Strategy.calls(): // with lookup, the transaction begins and ends within the commit
		return false
	}
	return c.Point.is(faults.AfterMark, faults.AfterEffect, faults.BeforeCommit)
}
