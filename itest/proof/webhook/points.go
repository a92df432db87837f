//go:build unix

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// point is a moment at which the process is killed. holdFunc makes the process wait at the moment of the kill.
type point struct {
	name string
	hold holdFunc
}

type holdFunc func(*run) (met func(context.Context) error, release func())

// Statements that identify a transaction: of a receipt, and of the processing of received events.
var (
	receipt = pgproxy.Containing("semel_inbox as i")
	effect  = pgproxy.Containing("insert into effects")
)

// commitOf matches the COMMIT of a transaction that contained the given statement.
func commitOf(statement pgproxy.Match) pgproxy.Match {
	var mutex sync.Mutex
	had := map[int]bool{} // by number of the connection: whether the transaction contained the statement
	return func(m pgproxy.Message) bool {
		mutex.Lock()
		defer mutex.Unlock()
		if statement(m) {
			had[m.Connection] = true
		}
		is := pgproxy.Commit(m) && had[m.Connection]
		if pgproxy.Commit(m) {
			delete(had, m.Connection)
		}
		return is
	}
}

// Two functions stop the process in the proxy: holdBefore at a message to the server, and holdAfter
// at the server's reply.
func holdBefore(m func() pgproxy.Match) holdFunc {
	return func(r *run) (func(context.Context) error, func()) {
		h := r.proxy.HoldRequest(pgproxy.Nth(1, m()))
		return h.Wait, h.Remove
	}
}

func holdAfter(m func() pgproxy.Match) holdFunc {
	return func(r *run) (func(context.Context) error, func()) {
		h := r.proxy.HoldReply(pgproxy.Nth(1, m()))
		return h.Wait, h.Remove
	}
}

func plain(m pgproxy.Match) func() pgproxy.Match { return func() pgproxy.Match { return m } }

func matchCommit(m pgproxy.Match) func() pgproxy.Match {
	return func() pgproxy.Match { return commitOf(m) }
}

var points = []point{
	{"half of the body is there", halfABody},
	{"before the row", holdBefore(plain(receipt))},
	{"after the row", holdAfter(plain(receipt))},
	{"before the commit of the row", holdBefore(matchCommit(receipt))},
	{"after the commit of the row", holdAfter(matchCommit(receipt))},
	{"the provider has its answer", afterAnswer},
	{"before the effect", holdBefore(plain(effect))},
	{"after the effect", holdAfter(plain(effect))},
	{"before the commit of the effect", holdBefore(matchCommit(effect))},
	{"after the commit of the effect", holdAfter(matchCommit(effect))},
}

// halfABody sends a request with a Content-Length, and closes the connection in the middle of the body.
func halfABody(r *run) (func(context.Context) error, func()) {
	c, err := net.Dial("tcp", r.receiverAt)
	if err == nil {
		_, err = fmt.Fprintf(c, "POST /hooks HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\nStripe-Signature: t=1,v1=00\r\n\r\n{\"id\":\"half\"")
	}
	met := func(ctx context.Context) error {
		processes.Pause(ctx, 20*time.Millisecond)
		return err
	}
	return met, func() {
		if c != nil {
			_ = c.Close()
		}
	}
}

// afterAnswer is the point directly after a 2xx response.
func afterAnswer(r *run) (func(context.Context) error, func()) {
	told := r.provider.tell()
	return func(ctx context.Context) error {
		select {
		case <-told:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, func() {}
}

// harmAll kills and ends the processes and restarts PostgreSQL, in an order that the seed determines.
func (r *run) harmAll(ctx context.Context) {
	var all []func(context.Context)
	add := func(times int, harm func(context.Context)) {
		for range times {
			all = append(all, harm)
		}
	}
	add(r.Kills, func(ctx context.Context) { r.kill(ctx, "at random") })
	for _, p := range points {
		add(r.Rounds, func(ctx context.Context) { r.killAt(ctx, p) })
	}
	add(r.Ends, r.end)
	add(r.Restarts, r.RestartServer)
	r.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	between := int64(2 * r.Publish / time.Duration(len(all)))
	for _, harm := range all {
		processes.Pause(ctx, time.Duration(r.random.Int64N(between)))
		r.Tend()
		harm(ctx)
	}
}

func (r *run) killAt(ctx context.Context, at point) {
	met, release := at.hold(r)
	defer release()
	most, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	proof.During(fmt.Sprintf("the process did not reach %q", at.name), func() { proof.Check(met(most)) })
	r.kill(ctx, at.name)
}

// kill kills both receivers and restarts them.
func (r *run) kill(ctx context.Context, at string) {
	r.receiver.Kill()
	r.naive.Kill()
	r.ledger.Kills++
	r.ledger.At[at]++
	r.Say("kill %d: %s", r.ledger.Kills, at)
	if r.Plant == plantForgetful { // the store loses its markers and rows
		r.Exec(ctx, `with done as (delete from semel_inbox where state = 'COMPLETED' returning scope, id)
			delete from semel_markers m using done where m.scope = done.scope and m.id = done.id`)
	}
	r.restartReceivers(ctx)
}

// end ends both receivers with SIGTERM and restarts them.
func (r *run) end(ctx context.Context) {
	proof.Check(errors.Join(r.receiver.End(), r.naive.End()))
	r.ledger.Ends++
	r.Say("end %d, by SIGTERM", r.ledger.Ends)
	r.restartReceivers(ctx)
}

// restartReceivers starts both receivers and waits until they listen.
func (r *run) restartReceivers(ctx context.Context) {
	r.receiver.Start()
	r.naive.Start()
	waitListening(ctx, r.receiver, r.receiverAt)
	waitListening(ctx, r.naive, r.naiveAt)
}
