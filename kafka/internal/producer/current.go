package producer

import (
	"sync"

	"github.com/semel-go/semel/internal/worker"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Current is the producer in use. Current is created for the first record, and replaced when it is
// spent.
type Current struct {
	make       func(spent func(*Producer)) (*Producer, error)
	background *worker.Group

	mu     sync.Mutex // guards the fields below; it is not held during blocking calls
	now    *Producer  // nil before the first record
	closed bool
}

// NewCurrent returns a Current that creates producers with make. Spent producers are closed in background.
func NewCurrent(background *worker.Group, make func(spent func(*Producer)) (*Producer, error)) *Current {
	return &Current{make: make, background: background}
}

// Open returns the producer in use. After Shut the error is kgo.ErrClientClosed.
func (c *Current) Open() (*Producer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, kgo.ErrClientClosed
	}
	var err error
	if c.now == nil {
		c.now, err = c.make(c.replace)
	}
	return c.now, err
}

// replace makes Open return another producer than this one.
func (c *Current) replace(spent *Producer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == spent && !c.closed {
		c.now = nil
		c.background.Go(spent.Close)
	}
}

// Shut prevents further producers. Shut returns the one in use, which the caller closes, or nil; first is false if
// Shut was called before.
func (c *Current) Shut() (last *Producer, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, c.closed = !c.closed, true
	return c.now, first
}
