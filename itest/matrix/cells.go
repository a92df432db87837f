// Package matrix is the crash matrix. Its tests cause each kind of fault at each point that a message passes in a
// consumer, with each strategy, lane mode and store. Each combination of fault, point, strategy, lane mode and store is
// a cell. In a cell that runs, no message may be lost, doubled or stuck. For a cell that cannot run, the method
// impossible returns the reason.
package matrix

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
)

// base is a store, with its driver.
type base string

const (
	inMemory   base = "memory"
	inSQLite   base = "sqlite"
	inPostgres base = "postgres" // with database/sql
	inPgx      base = "pgx"      // PostgreSQL with pgxstore
	inRedis    base = "redis"    // leased keys only
)

func (b base) isPostgres() bool { return b == inPostgres || b == inPgx }

// strategy is a mechanism that makes an effect happen once: a constructor of package consumer, with the settings of the
// consumer.
type strategy string

const (
	marker      strategy = "marker"
	inbox       strategy = "inbox"    // the effect is in the transaction that stores the row
	received    strategy = "received" // inbox with AckOnReceipt
	natural     strategy = "natural"
	businessKey strategy = "business_key"
	leased      strategy = "leased"     // consumer.NewLeased
	calling     strategy = "calling"    // consumer.NewCalling with the inbox
	lookup      strategy = "lookup"     // consumer.NewCalling with markers
	leasedKey   strategy = "leased_key" // consumer.NewKeyed
)

// acksOnReceipt reports whether a message is acked when it is stored, and processed later.
func (s strategy) acksOnReceipt() bool { return s == received || s == leased || s == calling }

// answers reports whether the handler calls another system, and the consumer applies the answer of the call in a
// transaction.
func (s strategy) answers() bool { return s == calling || s == lookup }

// calls reports whether the handler calls another system.
func (s strategy) calls() bool { return s.answers() || s == leased || s == leasedKey }

// commits reports whether the effect is written in a transaction of the store.
func (s strategy) commits() bool { return s != leased && s != leasedKey }

// point is a point of package faults. For strategies that ack on receipt, the points of the batch that
// only stores the message have the suffix onReceipt.
type point string

const onReceipt = " on receipt"

func (p point) engine() faults.Point { return faults.Point(strings.TrimSuffix(string(p), onReceipt)) }
func (p point) receipt() bool        { return strings.HasSuffix(string(p), onReceipt) }

// is reports whether p is one of these engine points.
func (p point) is(any ...faults.Point) bool { return slices.Contains(any, p.engine()) }

// points returns all points in the order in which a message passes them.
func points() (all []point) {
	batch := []faults.Point{faults.AfterMark, faults.BeforeCommit, faults.CommitReplyLost, faults.AfterCommit}
	for _, p := range faults.Points() {
		if p == faults.AfterMark {
			for _, p := range batch {
				all = append(all, point(p)+onReceipt)
			}
		}
		if p == faults.AfterEffect {
			all = append(all, point(faults.AfterCall))
		}
		all = append(all, point(p))
	}
	return all
}

type kind string

const (
	fails        kind = "error"           // the call at the point returns an error
	panics       kind = "panic"           // the user's code at the point panics
	exits        kind = "Goexit"          // the user's code at the point ends its goroutine
	cancels      kind = "cancel"          // the context of the run is cancelled
	killed       kind = "SIGKILL"         // of a child process
	frozen       kind = "SIGSTOP"         // of a child process, until another process has done its work
	commitCut    kind = "COMMIT cut"      // the connection ends before the server gets COMMIT
	replyCut     kind = "reply cut"       // the connection ends before the client gets the reply of COMMIT
	statementCut kind = "statement cut"   // the connection ends after the server has executed a statement
	restarts     kind = "server restarts" // the server is killed and started
)

// inProcess reports whether a fault needs neither another process nor a server.
func (k kind) inProcess() bool { return slices.Contains([]kind{fails, panics, exits, cancels}, k) }

// inUserCode reports whether the user's code, which is the handler or the source, causes the fault.
func (k kind) inUserCode() bool { return k == panics || k == exits }

// cut reports whether the connection to the server is cut.
func (k kind) cut() bool { return k == commitCut || k == replyCut || k == statementCut }

// cell is a combination of a store, a strategy, a kind of fault, a point and a lane mode.
type cell struct {
	Base     base
	Strategy strategy
	Kind     kind
	Point    point
	Lanes    consumer.LaneMode
}

// String returns the name of a cell. The name of the cell is also the name of the cell's consumer.
func (c cell) String() string {
	return strings.ReplaceAll(fmt.Sprintf("%s/%s/%s/%s/lanes %v", c.Base, c.Strategy, c.Kind, c.Point, c.Lanes), " ", "_")
}

func bases() []base { return []base{inMemory, inSQLite, inPostgres, inPgx, inRedis} }

func strategies() []strategy {
	return []strategy{marker, inbox, received, natural, businessKey, leased, calling, lookup, leasedKey}
}

func kinds() []kind {
	return []kind{fails, panics, exits, cancels, killed, frozen, commitCut, replyCut, statementCut, restarts}
}

// cells returns all cells. Faults in one process, and the kills of processes on SQLite, have a cell for each lane mode.
// The other faults take more time: for each combination of store, strategy, kind and point, there is only one cell with
// one of the lane modes. Neighbouring combinations have different lane modes.
func cells() (all []cell) {
	modes, turn := []consumer.LaneMode{consumer.LanesNone, consumer.LanesPartition, consumer.LanesKey}, 0
	for _, b := range bases() {
		for _, s := range strategies() {
			for _, k := range kinds() {
				for _, p := range points() {
					c := cell{Base: b, Strategy: s, Kind: k, Point: p}
					if turn++; k.inProcess() && (b == inMemory || b == inSQLite) || k == killed && b == inSQLite {
						for _, c.Lanes = range modes {
							all = append(all, c)
						}
						continue
					}
					c.Lanes = modes[turn%len(modes)]
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// short reports whether a cell belongs to the part of the matrix that `make test` runs: one lane mode and, on
// PostgreSQL, only cut connections and killed processes.
func (c cell) short(turn int) bool {
	switch {
	case c.Kind == frozen || c.Kind == restarts || int(c.Lanes) != turn%3 && (c.Base == inMemory || c.Base == inSQLite):
		return false
	case c.Base.isPostgres():
		return c.Kind.cut() || c.Kind == killed && turn%2 == 0
	}
	return c.Base != inSQLite || !c.Kind.inUserCode()
}
