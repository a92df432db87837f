package consumer

import (
	"context"
	"time"
)

// tendEvery is how often lines are looked through, tendAgain when that has failed.
const (
	tendEvery = time.Hour
	tendAgain = time.Minute
)

// tend looks after the lines of the inbox: those that are kept are swept at the start and
// now and then; those of a policy that was another are dissolved.
func (b *inbox) tend(base context.Context) {
	if b.lines == nil || time.Now().Before(b.tendAt) {
		return
	}
	ctx, cancel := context.WithTimeout(base, b.config.Inbox.Lease/2)
	defer cancel()
	look := b.dissolve
	if b.config.OnParked == OnParkedBlock {
		look = b.sweep
	}
	next := tendEvery
	if !look(ctx) {
		next = tendAgain
	}
	b.tendAt = time.Now().Add(next)
}

// sweep frees what waits behind others in the inbox, where those were removed by hand.
func (b *inbox) sweep(ctx context.Context) bool {
	freed, err := b.lines.Sweep(ctx)
	if err != nil {
		b.config.Logger.Warn("what waits behind removed rows was not looked for: that is tried again", "consumer", b.config.Name, "error", err)
		return false
	}
	if freed > 0 {
		b.config.Logger.Warn("messages waited behind others that are gone from the inbox by other means than semel's: they are due", "consumer", b.config.Name, "messages", freed)
	}
	return true
}

// dissolve lets what keeps an order in the inbox go on without it, where the policy asks
// for none any more: a version would else wait for one that is kept behind it.
func (b *inbox) dissolve(ctx context.Context) bool {
	rows, err := b.lines.Dissolve(ctx, b.config.Name)
	if rows > 0 {
		b.config.Logger.Warn("messages in the inbox kept an order that the policy does not ask for any more: they keep it no longer", "consumer", b.config.Name, "messages", rows)
	}
	if err != nil {
		b.config.Logger.Warn("messages in the inbox keep an order that the policy does not ask for any more, until it can be taken from them: that is tried again", "consumer", b.config.Name, "error", err)
	}
	return err == nil
}
