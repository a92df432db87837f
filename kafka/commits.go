package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// commits tell the group how far lanes are done. Everyone who waits for a commit
// shares the next one. One commit is under way at a time, and none is cancelled:
// two of them on two connections could reach the broker in the wrong order.
//
// What is settled within the interval after a commit shares the next one, which
// nobody waits for: a trickle of messages would else be as many commits. So the
// group learns of it later; after a crash it comes again. While commits fail,
// each settlement waits for one, so that whoever settles hears of it.
type commits struct {
	config  *Config
	brokers *brokers
	lanes   *lanes
	offsets *offsets
	member  *member
	faults  *faultList
	// positions are written before anything is committed.
	positions *positions
	// startWords are what goes with the offsets of a topic.
	startWords func(topic string) []string
	wake       chan struct{}
	interval   time.Duration

	mu      sync.Mutex // guards the rest; under it no other lock is taken
	next    *round
	began   time.Time // of the last round
	failing time.Time // since when rounds fail; zero if the last one did not
	told    time.Time // when that was told last
}

// round is a commit of everything that is dirty when it begins.
type round struct {
	done chan struct{}
	err  error
}

func newRound() *round { return &round{done: make(chan struct{})} }

// due reports whether a settlement is to be committed at once.
func (c *commits) due(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.failing.IsZero() || now.Sub(c.began) >= c.interval
}

// ended notes how a round ended. It reports whether it is time to say that
// rounds fail, where nobody may be waiting for one.
func (c *commits) ended(err error, now time.Time) (tell bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.failing = time.Time{}
		return false
	case c.failing.IsZero():
		c.failing, c.told = now, now
	}
	if tell = now.Sub(c.told) >= complainEvery; tell {
		c.told = now
	}
	return tell
}

// ask asks for a round, which begins after the call.
func (c *commits) ask() *round {
	c.mu.Lock()
	r := c.next
	c.mu.Unlock()
	c.rouse()
	return r
}

// wait waits for a round that begins after the call.
func (c *commits) wait(ctx context.Context) error { return c.ask().wait(ctx) }

func (r *round) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("kafka: the group's offsets are not committed yet: %w", ctx.Err())
	}
}

func (c *commits) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *commits) begin() *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.next
	c.next = newRound()
	c.began = time.Now()
	return r
}

// run commits until life ends: when it is asked to, and with each interval what
// nobody waits for.
func (c *commits) run(life context.Context) {
	ticker := time.NewTicker(c.config.CommitInterval)
	defer ticker.Stop()
	for {
		select {
		case <-c.wake:
			ticker.Reset(c.config.CommitInterval)
		case <-ticker.C:
		case <-life.Done():
			r := c.begin()
			r.err = fmt.Errorf("kafka: the source is closed: %w", semel.ErrClosed)
			close(r.done)
			return
		}
		r := c.begin()
		r.err = c.commit(life)
		close(r.done)
		if c.ended(r.err, time.Now()) {
			c.faults.complain(r.err)
		}
	}
}
