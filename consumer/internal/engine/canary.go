package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// canaries chooses messages, the canaries, whose handlers run twice on purpose: the first success is rolled back, and
// the handler runs again. An effect outside the transaction then happens twice, as after a crash before the commit.
type canaries struct {
	oneIn uint64 // one message in oneIn is a canary; 0 means that no message is

	mutex sync.Mutex
	// rolledBack contains the arrival numbers of the canaries that were rolled back on purpose and have not ended;
	// guarded by mutex.
	rolledBack map[uint64]bool
}

// mostRolledBack is the maximum size of canaries.rolledBack. Canaries that are lost with their lanes are never removed
// one by one. When the limit is reached, all are removed, so that messages in memory can be rolled back once more.
const mostRolledBack = 10_000

// chosen reports whether a message is a canary. The choice depends only on the identity, so it is the same in each
// process and for each copy.
func (c *canaries) chosen(it *machine.Item) bool {
	sum := sha256.Sum256([]byte(it.Source + "\x00" + it.Identity))
	return binary.BigEndian.Uint64(sum[:])%c.oneIn == 0
}

// due reports whether the success of handlers must be rolled back: a canary is among the entries, and no canary among
// them was rolled back before.
func (c *canaries) due(f *machine.Flight, entries ...int) (due bool) {
	if c.oneIn == 0 {
		return false
	}
	for _, i := range entries {
		it := f.Entries[i].Item
		if !c.chosen(it) {
			continue
		}
		if c.wasRolledBack(it) {
			return false
		}
		due = true
	}
	return due
}

func (c *canaries) wasRolledBack(it *machine.Item) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.rolledBack[it.Arrival()]
}

// recordRollback records that the canaries among the entries are rolled back, and returns their items.
func (c *canaries) recordRollback(f *machine.Flight, entries ...int) (all []*machine.Item) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.rolledBack == nil || len(c.rolledBack) >= mostRolledBack {
		c.rolledBack = map[uint64]bool{}
	}
	for _, i := range entries {
		if it := f.Entries[i].Item; c.chosen(it) {
			c.rolledBack[it.Arrival()] = true
			all = append(all, it)
		}
	}
	return all
}

// forgetEnded forgets the messages that a committed batch ended. The function ending is Machine.Ending.
func (c *canaries) forgetEnded(f *machine.Flight, ending func(*machine.Flight, int) (source.End, semel.Reason)) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.rolledBack) == 0 {
		return
	}
	for i := range f.Entries {
		if end, _ := ending(f, i); end != source.EndUnknown {
			delete(c.rolledBack, f.Entries[i].Item.Arrival())
		}
	}
}

var errCanary = errors.New("semel: the handler succeeded, and its transaction is rolled back on purpose (Config.Canary)")

// rollBackCanary makes the machine roll back a batch whose handlers have succeeded. The event for the machine has the
// class of a lost claim, which means that no message has failed: the batch runs again at once and in order, no attempt
// is counted, and nothing is reported.
func (p *pilot[Tx]) rollBackCanary(f *flight[Tx], out *machine.Ran, entries ...int) {
	for _, it := range p.engine.canaries.recordRollback(f.Flight, entries...) {
		p.engine.Reporter.CanaryRerun(it)
	}
	out.Failed, out.Failure = true, machine.Failure{Class: store.ClassClaimLost, Err: errCanary}
}
