//go:build unix

package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// add starts a further member. Every third is a static one.
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

// catch freezes a member in a transaction that has begun and is open. A plain loop has no guard
// to wait for.
func (r *run) catch(ctx context.Context) (*proof.Member, error) {
	h := proof.Hunt{Opening: r.opening(), Most: 90 * time.Second, Corner: 15 * time.Second, Random: r.random}
	if r.plain() {
		h.Corner = 0
	}
	m, open, err := r.Catch(ctx, h)
	if err == nil && !open {
		err = fmt.Errorf("for %v no member was met with an open transaction", h.Most)
	}
	return m, err
}

// opening is what the transactions begin with that are meant: of the inbox, those with
// claims.
func (r *run) opening() processes.Opening {
	if r.Inbox {
		return processes.Claiming()
	}
	return processes.Marking()
}

// end has a member drain and end. A plain loop fails as it likes.
func (r *run) end(m *proof.Member) error {
	if err := r.Drain(m, proof.Consumer); !r.plain() {
		return err
	}
	return nil
}

// endAll has the members drain and end.
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
