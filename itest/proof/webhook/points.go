//go:build unix

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// point is a moment at which the process is killed. hold stops the process at this moment.
type point struct {
	name string
	hold func(*run) (met func(context.Context) error, release func())
}

// held returns a hold function that uses the proxy: the rule delays a message to the database server, or its
// reply.
func held(rule func(*pgproxy.Proxy) *pgproxy.Rule) func(*run) (func(context.Context) error, func()) {
	return func(r *run) (func(context.Context) error, func()) {
		h := rule(r.proxy)
		return h.Wait, h.Remove
	}
}

// Statements that identify a transaction: of a receipt, and of the processing of received events.
var (
	receipt = pgproxy.Containing("semel_inbox as i")
	effect  = pgproxy.Containing("insert into effects")
)

// commitOf matches the COMMIT of a transaction that contained this statement.
func commitOf(statement pgproxy.Match) pgproxy.Match {
	var mutex sync.Mutex
	had := map[int]bool{} // by number of the connection: whether its transaction contained the statement
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

func before(m func() pgproxy.Match) func(*run) (func(context.Context) error, func()) {
	return held(func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldRequest(pgproxy.Nth(1, m())) })
}

func after(m func() pgproxy.Match) func(*run) (func(context.Context) error, func()) {
	return held(func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldReply(pgproxy.Nth(1, m())) })
}

func plain(m pgproxy.Match) func() pgproxy.Match { return func() pgproxy.Match { return m } }

func committing(m pgproxy.Match) func() pgproxy.Match {
	return func() pgproxy.Match { return commitOf(m) }
}

var points = []point{
	{"half of the body is there", halfABody},
	{"before the row", before(plain(receipt))},
	{"after the row", after(plain(receipt))},
	{"before the commit of the row", before(committing(receipt))},
	{"after the commit of the row", after(committing(receipt))},
	{"the provider has its answer", answered},
	{"before the effect", before(plain(effect))},
	{"after the effect", after(plain(effect))},
	{"before the commit of the effect", before(committing(effect))},
	{"after the commit of the effect", after(committing(effect))},
}

// halfABody sends a request with a Content-Length and closes in the middle of the body.
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

// answered is the point directly after a 2xx response.
func answered(r *run) (func(context.Context) error, func()) {
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
func (r *run) harmAll(ctx context.Context) error {
	var all []func(context.Context) error
	add := func(times int, harm func(context.Context) error) {
		for range times {
			all = append(all, harm)
		}
	}
	add(r.Kills, func(ctx context.Context) error { return r.kill(ctx, "at random") })
	for _, p := range points {
		add(r.Rounds, func(ctx context.Context) error { return r.killAt(ctx, p) })
	}
	add(r.Ends, r.end)
	add(r.Restarts, r.RestartServer)
	r.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	between := int64(2 * r.Publish / time.Duration(len(all)))
	for _, harm := range all {
		processes.Pause(ctx, time.Duration(r.random.Int64N(between)))
		if err := errors.Join(r.Tend(), harm(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// killAt kills the process at a point.
func (r *run) killAt(ctx context.Context, at point) error {
	met, release := at.hold(r)
	defer release()
	most, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := met(most); err != nil {
		return fmt.Errorf("the process did not reach %q: %w", at.name, err)
	}
	return r.kill(ctx, at.name)
}

// kill kills both receivers and restarts them.
func (r *run) kill(ctx context.Context, at string) error {
	if err := errors.Join(r.receiver.Kill(), r.naive.Kill()); err != nil {
		return err
	}
	r.ledger.Kills++
	r.ledger.At[at]++
	r.Say("kill %d: %s", r.ledger.Kills, at)
	return errors.Join(r.forget(ctx), r.again(ctx))
}

// end ends both receivers with SIGTERM and restarts them.
func (r *run) end(ctx context.Context) error {
	if err := errors.Join(r.receiver.End(), r.naive.End()); err != nil {
		return err
	}
	r.ledger.Ends++
	r.Say("end %d, by SIGTERM", r.ledger.Ends)
	return r.again(ctx)
}

// again starts both receivers and waits until they listen.
func (r *run) again(ctx context.Context) error {
	if err := errors.Join(r.receiver.Start(), r.naive.Start()); err != nil {
		return err
	}
	return errors.Join(r.listens(ctx, r.receiver, r.receiverAt), r.listens(ctx, r.naive, r.naiveAt))
}

// forget deletes the store's markers and rows, if that fault is planted.
func (r *run) forget(ctx context.Context) error {
	if r.Plant != plantForgetful {
		return nil
	}
	_, err := r.Activity.DB.ExecContext(ctx, `with done as (delete from semel_inbox where state = 'COMPLETED' returning scope, id)
		delete from semel_markers m using done where m.scope = done.scope and m.id = done.id`)
	return err
}
