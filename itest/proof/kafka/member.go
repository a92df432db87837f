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
func (r *run) add() error {
	m := r.Add()
	m.Policy, m.Counted = dynamicPolicy, true
	if r.added++; r.added%3 == 1 {
		m.Policy = staticPolicy
	}
	if err := r.plant(m); err != nil {
		return err
	}
	return m.Start()
}

// catch freezes a member in an open transaction. For a plain loop catch does not wait for a marker, because a
// plain loop writes none.
func (r *run) catch(ctx context.Context) (*proof.Member, error) {
	h := proof.Hunt{Opening: r.opening(), Most: 90 * time.Second, Corner: 15 * time.Second, Random: r.random}
	if r.plain() {
		h.Corner = 0
	}
	m, open, err := r.Catch(ctx, h)
	if err == nil && !open {
		err = fmt.Errorf("no member had an open transaction within %v", h.Most)
	}
	return m, err
}

// opening returns the first statement of the transactions to catch. With the inbox these are the transactions
// that claim rows.
func (r *run) opening() processes.Opening {
	if r.Inbox {
		return processes.Claiming()
	}
	return processes.Marking()
}

// end drains and stops a member. An error of a plain loop is ignored.
func (r *run) end(m *proof.Member) error {
	if err := r.Drain(m, proof.Consumer); !r.plain() {
		return err
	}
	return nil
}

// endAll drains and ends the members.
func (r *run) endAll() (err error) {
	for _, m := range r.Members {
		if err := r.end(m); err != nil {
			return err
		}
	}
	r.Over()
	r.ledger.Delivered = r.Delivered()
	if r.frozen != nil {
		r.ledger.Frozen, err = r.frozen.Stopped()
	}
	return err
}
