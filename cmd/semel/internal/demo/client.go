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

// delivery is one arrival of a payment.
type delivery struct {
	Position int             `json:"position"`
	Before   int             `json:"before"`
	Body     json.RawMessage `json:"body"`
	// Crash, when not empty, is where the process that took it must die.
	Crash Point `json:"crash,omitempty"`
}

// request is what a consumer says; one of the fields is set. A fetch is
// answered with one reply, the others are not answered.
type request struct {
	Fetch  int   `json:"fetch,omitempty"`
	Cancel bool  `json:"cancel,omitempty"`
	Settle []int `json:"settle,omitempty"`
	Back   []int `json:"back,omitempty"`
	// Dies says that the process kills itself now.
	Dies *Crash `json:"dies,omitempty"`
}

// reply answers a fetch. At the end it carries no deliveries; otherwise only
// after a cancel.
type reply struct {
	Deliveries []delivery `json:"deliveries,omitempty"`
	End        bool       `json:"end,omitempty"`
}

// client is a consumer's connection to the broker, and what kills its process.
type client struct {
	replies *json.Decoder // of the goroutine that fetches
	// lost ends the consumer when the broker is gone: nobody else would stop a
	// process whose parent was killed.
	lost context.CancelCauseFunc

	mutex    sync.Mutex    // one request or death at a time
	requests *json.Encoder // guarded by mutex
	crash    *Crash        // guarded by mutex
}

func newClient(in io.Reader, out io.Writer, lost context.CancelCauseFunc) *client {
	return &client{replies: json.NewDecoder(in), lost: lost, requests: json.NewEncoder(out)}
}

// errEnd says that everything is settled.
var errEnd = errors.New("the deliveries have ended")

func (c *client) send(r request) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.requests.Encode(r)
}

// fetch waits for deliveries, errEnd, or the end of ctx.
func (c *client) fetch(ctx context.Context, most int) ([]delivery, error) {
	if err := c.send(request{Fetch: most}); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.send(request{Cancel: true}) })() // if it cannot be sent, nor does a reply come
	var r reply
	if err := c.replies.Decode(&r); err != nil {
		err = fmt.Errorf("the broker is gone: %w", err)
		c.lost(err)
		return nil, err
	}
	if r.End {
		return nil, errEnd
	}
	c.arm(r.Deliveries)
	return r.Deliveries, nil
}

func (c *client) arm(taken []delivery) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, d := range taken {
		if d.Crash != "" {
			c.crash = &Crash{Delivery: d.Position, Point: d.Crash}
		}
	}
}

// next waits for one delivery, for a consumer that takes one after the other.
func (c *client) next(ctx context.Context) (delivery, error) {
	taken, err := c.fetch(ctx, 1)
	if err != nil {
		return delivery{}, err
	}
	if len(taken) == 0 {
		return delivery{}, ctx.Err()
	}
	c.at(Received)
	return taken[0], nil
}

// settle tells the broker never to deliver d again.
func (c *client) settle(d delivery) error { return c.send(request{Settle: []int{d.Position}}) }

// at kills the process if the schedule says so. Nothing of it runs any more:
// no deferred call, no rollback, no goodbye to the database.
func (c *client) at(p Point) {
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
	select {} // until the signal is here
}

// atPoint is at for Semel's points.
func (c *client) atPoint(p faults.Point, _ int) {
	switch p {
	case faults.AfterFetch:
		c.at(Received)
	case faults.AfterEffect:
		c.at(InTransaction)
	case faults.AfterCommit:
		c.at(BetweenSteps)
	}
}
