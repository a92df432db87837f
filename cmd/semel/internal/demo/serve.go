package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// serve starts a consumer's process and is the broker of the process until the process ends. serve returns
// true if the consumer has finished, and false if the process died at a planned crash. serve calls the
// function show after each change.
func serve(ctx context.Context, b *broker, cmd *exec.Cmd, show func()) (ended bool, err error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return false, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	c := conversation{broker: b, replies: json.NewEncoder(in)}
	talked := c.run(json.NewDecoder(out), show)
	if talked != nil {
		_ = cmd.Process.Kill() // the process may have ended already
	}
	died := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case talked != nil:
		return false, fmt.Errorf("the process sent an invalid request: %w\n%s", talked, said.Bytes())
	case died == nil && b.isEmpty():
		return true, nil
	case died != nil && c.crash != nil:
		b.recordCrash(c.crash.Delivery)
		show()
		return false, nil
	case died == nil:
		died = errors.New("it ended before all deliveries were acked")
	}
	return false, fmt.Errorf("the process: %w\n%s", died, said.Bytes())
}

// conversation is the broker's end of the pipes to a process.
type conversation struct {
	broker  *broker
	replies *json.Encoder
	// requested is the number of deliveries that the process has asked for; 0 if the process does not
	// wait.
	requested int
	crash     *Crash
}

// run handles requests until the process closes its pipe.
func (c *conversation) run(requests *json.Decoder, show func()) error {
	for {
		var r request
		switch err := requests.Decode(&r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		c.handle(r)
		show()
	}
}

func (c *conversation) handle(r request) {
	c.broker.ack(r.Settle)
	c.broker.redeliver(r.Back)
	if r.Fetch > 0 {
		c.requested = r.Fetch
	}
	if r.Dies != nil {
		c.crash = r.Dies
	}
	if c.requested == 0 {
		return
	}
	answer := reply{Deliveries: c.broker.nextDeliveries(c.requested), End: c.broker.isEmpty()}
	if answer.Deliveries != nil || answer.End || r.Cancel {
		c.requested = 0
		_ = c.replies.Encode(answer) // if the process has ended, reading the next request fails
	}
}
