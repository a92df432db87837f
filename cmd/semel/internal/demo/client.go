package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/semel-go/semel/faults"
)

// delivery is a delivery of a payment to a consumer.
type delivery struct {
	Position int             `json:"position"`
	Before   int             `json:"before"`
	Body     json.RawMessage `json:"body"`
	// Crash is the step at which the receiving process must die; empty for no crash.
	Crash Point `json:"crash,omitempty"`
}

// request is a message from the consumer to the broker. Exactly one field of a request is set. The broker
// replies only to a fetch.
type request struct {
	Fetch  int   `json:"fetch,omitempty"`
	Cancel bool  `json:"cancel,omitempty"`
	Settle []int `json:"settle,omitempty"`
	Back   []int `json:"back,omitempty"`
	// Dies has the planned crash at which the process is about to kill itself.
	Dies *Crash `json:"dies,omitempty"`
}

// reply is the broker's reply to a fetch. After a cancel, and when all messages are acked, the reply has no
// deliveries.
type reply struct {
	Deliveries []delivery `json:"deliveries,omitempty"`
	End        bool       `json:"end,omitempty"`
}

// client is a consumer's connection to the broker. At a planned crash, client kills the process in which it
// runs.
type client struct {
	replies *json.Decoder // used only by the fetching goroutine
	// endConsumer ends the consumer if the broker closes the connection. Without endConsumer, the consumer's process
	// would continue after its parent process was killed.
	endConsumer context.CancelCauseFunc

	mutex    sync.Mutex    // held during a request and during a crash
	requests *json.Encoder // guarded by mutex
	crash    *Crash        // guarded by mutex
}

func newClient(in io.Reader, out io.Writer, lost context.CancelCauseFunc) *client {
	return &client{replies: json.NewDecoder(in), endConsumer: lost, requests: json.NewEncoder(out)}
}

// errEnd means that all messages are acked.
var errEnd = errors.New("the deliveries have ended")

func (c *client) send(r request) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.requests.Encode(r)
}

// fetch waits for deliveries. If all messages are acked, fetch returns errEnd. If ctx ends, fetch returns
// the error of ctx.
func (c *client) fetch(ctx context.Context, most int) ([]delivery, error) {
	if err := c.send(request{Fetch: most}); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.send(request{Cancel: true}) })() // if the cancel cannot be sent, the connection is closed and fetch ends too
	var r reply
	if err := c.replies.Decode(&r); err != nil {
		err = fmt.Errorf("the broker has gone: %w", err)
		c.endConsumer(err)
		return nil, err
	}
	if r.End {
		return nil, errEnd
	}
	c.planCrash(r.Deliveries)
	return r.Deliveries, nil
}

func (c *client) planCrash(taken []delivery) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, d := range taken {
		if d.Crash != "" {
			c.crash = &Crash{Delivery: d.Position, Point: d.Crash}
		}
	}
}

// fetchOne waits for a single delivery. Consumers without batches use fetchOne.
func (c *client) fetchOne(ctx context.Context) (delivery, error) {
	taken, err := c.fetch(ctx, 1)
	if err != nil {
		return delivery{}, err
	}
	if len(taken) == 0 {
		return delivery{}, ctx.Err()
	}
	c.crashAt(Received)
	return taken[0], nil
}

func (c *client) ack(d delivery) error { return c.send(request{Settle: []int{d.Position}}) }

// crashAt kills the process if a crash is planned for the given step. The kill is immediate: no
// deferred call runs, nothing is rolled back, and the database is not closed.
func (c *client) crashAt(p Point) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.crash == nil || c.crash.Point != p {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = c.requests.Encode(request{Dies: c.crash})
	}
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // wait for the signal
}

// crashAtFault calls crashAt with the step that corresponds to a fault point of Semel.
func (c *client) crashAtFault(p faults.Point, _ int) {
	switch p {
	case faults.AfterFetch:
		c.crashAt(Received)
	case faults.AfterEffect:
		c.crashAt(InTransaction)
	case faults.AfterCommit:
		c.crashAt(BetweenSteps)
	}
}
