//go:build unix

package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// add starts another member. Every third member is a static member of the group.
func (r *run) add() {
	m := r.Add()
	m.Policy, m.Counted = dynamicPolicy, true
	if r.added++; r.added%3 == 1 {
		m.Policy = staticPolicy
	}
	if r.plain() {
		r.RunPlainLoop(m, r.Plant, topic, r.Session)
	}
	m.Start()
}

// plain reports whether the members run a plain loop instead of semel.
func (r *run) plain() bool { return r.Plant == proof.SettleFirst || r.Plant == proof.SettleLast }

// catch freezes a member in an open transaction. For a plain loop, catch does not wait for a marker, because a plain
// loop writes no markers.
func (r *run) catch(ctx context.Context) *proof.Member {
	h := proof.Hunt{Opening: r.openingStatement(), Most: 90 * time.Second, Corner: 15 * time.Second, Random: r.random}
	if r.plain() {
		h.Corner = 0
	}
	m, open := r.Catch(ctx, h)
	if !open {
		proof.Check(fmt.Errorf("no member had an open transaction within %v", h.Most))
	}
	return m
}

// openingStatement returns the first statement of the transactions to catch. With the inbox, catch looks for
// transactions that claim rows.
func (r *run) openingStatement() processes.Opening {
	if r.Inbox {
		return processes.Claiming()
	}
	return processes.Marking()
}

// end drains and stops a member. An error of a plain loop is ignored.
func (r *run) end(m *proof.Member) {
	if r.plain() {
		_ = m.End()
	} else {
		r.Drain(m, proof.Consumer)
	}
}
