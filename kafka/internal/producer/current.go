package producer

import (
	"sync"

	"github.com/semel-go/semel/internal/worker"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Current holds the producer in use. Current creates a producer for the first record. When a producer can no longer
// write, Current creates a new producer for the next record.
type Current struct {
	make       func(spent func(*Producer)) (*Producer, error)
	background *worker.Group

	mu       sync.Mutex // guards the fields below; not held during blocking calls
	producer *Producer  // nil before the first record
	closed   bool
}

// NewCurrent returns a Current that creates producers with the function make. A producer that can no longer write is
// closed by a goroutine of the group background.
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
	if c.producer == nil {
		c.producer, err = c.make(c.replace)
	}
	return c.producer, err
}

// replace makes the next call of Open create a producer, if the producer spent is still in use.
func (c *Current) replace(spent *Producer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.producer == spent && !c.closed {
		c.producer = nil
		c.background.Go(spent.Close)
	}
}

// Shut prevents the creation of further producers. Shut returns the producer in use, which the caller must close, or
// nil. The result first is false if Shut was called before.
func (c *Current) Shut() (last *Producer, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, c.closed = !c.closed, true
	return c.producer, first
}
