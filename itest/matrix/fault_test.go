//go:build unix

package matrix

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/itest/services/pgproxy"
)

var errInjected = errors.New("this call fails on purpose")

// fault makes the fault of a cell happen once. The zero value, without a kind, causes no fault.
type fault struct {
	cell
	cancel  context.CancelFunc // ends the run
	restart func()             // restarts the server
	proxy   *pgproxy.Proxy     // nil if the store is not PostgreSQL

	mu     sync.Mutex           // guards the fields below
	passed map[faults.Point]int // how often each point was passed with messages
	armed  []string             // operations of the store; the next call of one of these operations fails
	rule   *pgproxy.Rule        // the rule of the proxy that cuts the connection
	did    bool                 // the fault has happened
}

// at is called at each point of the engine.
func (f *fault) at(p faults.Point, n int) {
	if f.Kind == "" || n == 0 {
		return
	}
	f.mu.Lock()
	if f.passed == nil {
		f.passed = map[faults.Point]int{}
	}
	f.passed[p]++
	passed := f.passed[p]
	if !f.did && f.rule == nil {
		f.arm(p, passed)
	}
	if f.rule != nil && p == faults.CommitReplyLost {
		f.rule.Remove()
	}
	now := !f.did && p == f.Point.engine() && (passed == f.nth() || p == faults.CommitReplyLost)
	act := f.acts()
	if f.did = f.did || now && act != nil; !now || act == nil {
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	act()
}

// nth returns how often the consumer must have passed the point when the fault happens. If messages are acked on
// receipt, the first batch only stores the messages, so nth returns 2 for the points of the next batch.
func (f *fault) nth() int {
	if f.Strategy.acksOnReceipt() && !f.Point.receipt() && f.Point.is(faults.AfterMark, faults.BeforeCommit, faults.CommitReplyLost, faults.AfterCommit) {
		return 2
	}
	return 1
}

// acts returns a function that causes the fault at a point of the engine. If a call causes the fault, acts returns nil.
func (f *fault) acts() func() {
	switch f.Kind {
	case cancels:
		return f.cancel
	case killed:
		return func() {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal may reach another thread of this process first
		}
	case frozen:
		return func() {
			thawed := make(chan os.Signal, 1)
			signal.Notify(thawed, syscall.SIGCONT)
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			<-thawed // the signal may reach another thread of this process first
		}
	case restarts:
		return f.restart
	}
	return nil
}

// arm makes one of the next calls of the store fail. The caller holds the mutex.
func (f *fault) arm(p faults.Point, passed int) {
	before := p == faults.BeforeCommit && passed == f.nth()
	begins := p == faults.AfterFetch
	if f.nth() == 2 {
		begins = p == faults.AfterCommit && passed == 1
	}
	switch {
	case f.Point.is(faults.CommitReplyLost) && before:
		if f.proxy != nil {
			// The replies of all commits are cut until the consumer passes the point, because the first commit may be a
			// commit of the engine that belongs to no message. The end of a leased key is requested again, and the
			// consumer does not pass the point.
			match := f.commit
			if f.Strategy == leasedKey {
				match = pgproxy.Nth(1, match)
			}
			f.rule = f.proxy.CutReply(match)
			return
		}
		f.armed = []string{f.ends() + "-after"}
	case f.Kind == fails && f.Point.is(faults.BeforeCommit) && before:
		f.armed = []string{f.ends() + "-before"}
	case f.Kind == fails && f.Point.is(faults.AfterMark) && begins:
		f.armed = []string{"begin", "look-up", "claim-before", "end-before", "key-before"}
	case f.Kind == commitCut && before:
		f.rule = f.proxy.CutRequest(pgproxy.Nth(1, f.commit))
	case f.Kind == statementCut && f.Point.is(faults.AfterMark) && begins:
		f.rule = f.proxy.CutReply(pgproxy.Nth(1, pgproxy.Containing("semel_")))
	case f.Kind == statementCut && f.Point.is(faults.AfterEffect) && p == faults.AfterFetch:
		f.rule = f.proxy.CutReply(pgproxy.Nth(1, pgproxy.Containing("matrix_effects")))
	}
}

// ends returns the operation of the store that ends a message.
func (f *fault) ends() string {
	switch {
	case f.Strategy == leased && !f.Point.receipt():
		return "end"
	case f.Strategy == leasedKey:
		return "key"
	}
	return "commit"
}

// commit matches the statement that ends a message: COMMIT, or the statement that ends a claim.
func (f *fault) commit(m pgproxy.Message) bool {
	if f.ends() == "end" {
		return strings.Contains(m.SQL, "h.outcome")
	}
	return pgproxy.Commit(m)
}

// call returns the error with which an operation of the store must fail, or nil if the operation must not fail. The
// operations have the names of memstore.Fail.
func (f *fault) call(operation string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.armed, operation) {
		return nil
	}
	f.armed = nil
	f.did = f.did || f.Kind == fails
	return errInjected
}

// The user's code (the source and the handler) calls user at its points. user returns an error, panics or ends the
// goroutine if the fault belongs to this point.
func (f *fault) user(p faults.Point) error {
	f.mu.Lock()
	here := !f.did && !f.Point.receipt() && f.Point.is(p) && (f.Kind.inUserCode() || f.Kind == fails && p != faults.AfterMark)
	f.did = f.did || here
	f.mu.Unlock()
	switch {
	case !here:
		return nil
	case f.Kind == panics:
		panic("on purpose")
	case f.Kind == exits:
		runtime.Goexit()
	}
	return errInjected
}

func (f *fault) happened() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.did || f.Kind.cut() && f.rule != nil && f.rule.Hits() > 0
}
