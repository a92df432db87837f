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
	// Crash, if not empty, is the point at which the process that gets the delivery must die.
	Crash Point `json:"crash,omitempty"`
}

// request is a message from the consumer to the broker, with one of its fields set. Only a fetch gets a reply.
type request struct {
	Fetch  int   `json:"fetch,omitempty"`
	Cancel bool  `json:"cancel,omitempty"`
	Settle []int `json:"settle,omitempty"`
	Back   []int `json:"back,omitempty"`
	// Dies announces that the process kills itself now.
	Dies *Crash `json:"dies,omitempty"`
}

// reply answers a fetch. It has no deliveries at the end of all deliveries, or after a cancel.
type reply struct {
	Deliveries []delivery `json:"deliveries,omitempty"`
	End        bool       `json:"end,omitempty"`
}

// client is a consumer's connection to the broker. client also kills the process at planned
// crashes.
type client struct {
	replies *json.Decoder // used by the goroutine that fetches
	// lost ends the consumer when the broker has gone. Otherwise the process would outlive a killed parent.
	lost context.CancelCauseFunc

	mutex    sync.Mutex    // held during a request, and during a crash
	requests *json.Encoder // guarded by mutex
	crash    *Crash        // guarded by mutex
}

func newClient(in io.Reader, out io.Writer, lost context.CancelCauseFunc) *client {
	return &client{replies: json.NewDecoder(in), lost: lost, requests: json.NewEncoder(out)}
}

// errEnd reports that all deliveries are acked.
var errEnd = errors.New("the deliveries have ended")

func (c *client) send(r request) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.requests.Encode(r)
}

// fetch waits for deliveries. fetch returns errEnd at the end of all deliveries, or the error of
// ctx.
func (c *client) fetch(ctx context.Context, most int) ([]delivery, error) {
	if err := c.send(request{Fetch: most}); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.send(request{Cancel: true}) })() // if the cancel cannot be sent, no reply comes either
	var r reply
	if err := c.replies.Decode(&r); err != nil {
		err = fmt.Errorf("the broker has gone: %w", err)
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

// next waits for one delivery, for consumers without batches.
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

// settle acks d.
func (c *client) settle(d delivery) error { return c.send(request{Settle: []int{d.Position}}) }

// at kills the process if the plan has a crash at this point. Nothing runs afterwards: no deferred call, no rollback,
// no close of the database.
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
	select {} // until the signal arrives
}

// atPoint calls at for Semel's fault points.
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
