package pgxstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
)

// channel is the name under which processes notify each other in a database.
const channel = "semel_due"

// A connection that listens is given so long to be made, to hear its own
// notification, and to answer when nothing was heard for a while.
const (
	connectsWithin = 10 * time.Second
	provesWithin   = 5 * time.Second
	asksAfter      = 30 * time.Second
)

// exchange lets the consumers of a store hear notifications and send them. All hear
// over one connection, which one of those who listen keeps; when it leaves, another
// does.
type exchange struct {
	// listen is how to connect; nil: nobody listens.
	listen *pgx.ConnConfig
	pool   *pgxpool.Pool
	// place begins what is sent: the tables that it is about.
	place string
	// keeper has room for the one who keeps the connection.
	keeper chan struct{}

	mutex sync.Mutex
	hears bool              // guarded by mutex
	ears  map[*ear]struct{} // guarded by mutex
}

// ear is a consumer that listens.
type ear struct {
	payload string
	due     func()
}

// newExchange reads the connection string of who listens. Its error shows nothing of
// it, since it may hold a password.
func newExchange(pool *pgxpool.Pool, o Options) (*exchange, error) {
	x := &exchange{pool: pool, place: cmp.Or(o.Schema, "public") + "." + cmp.Or(o.Prefix, "semel_"), keeper: make(chan struct{}, 1), ears: map[*ear]struct{}{}}
	if o.Listen == "" {
		return x, nil
	}
	config, err := pgx.ParseConfig(o.Listen)
	if err != nil {
		return nil, errors.New("pgxstore: Options.Listen is no connection string; write postgres://user:password@host:5432/database")
	}
	x.listen = config
	return x, nil
}

// payload is what is sent of a consumer.
func (x *exchange) payload(consumer string) string { return x.place + "/" + consumer }

// Listen implements admin.Notifier, over a connection of Options.Listen, which all
// that listen share. It proves itself first: the store sends it a notification over
// the pool, as Notify does. A pooler that gives each transaction another connection
// takes LISTEN and never passes on what comes.
func (t *tables) Listen(ctx context.Context, consumer string, due func()) error {
	x := t.exchange
	if x.listen == nil {
		return fmt.Errorf("pgxstore: Options.Listen is not set: %w", semel.ErrUnsupported)
	}
	e := &ear{x.payload(consumer), due}
	x.add(e)
	defer x.remove(e)
	select {
	case x.keeper <- struct{}{}:
		defer func() { <-x.keeper }()
	case <-ctx.Done():
		return nil
	}
	err := x.keep(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Notify implements admin.Notifier, in a statement of its own over the pool.
func (t *tables) Notify(ctx context.Context, consumer string) error {
	if t.exchange.listen == nil {
		return nil
	}
	return t.exchange.send(ctx, t.exchange.payload(consumer))
}

func (x *exchange) send(ctx context.Context, payload string) error {
	if _, err := x.pool.Exec(ctx, "select pg_catalog.pg_notify($1, $2)", channel, payload); err != nil {
		return fmt.Errorf("pgxstore: notify: %w", err)
	}
	return nil
}

// add lets a consumer hear. If others hear already it does so at once.
func (x *exchange) add(e *ear) {
	x.mutex.Lock()
	x.ears[e] = struct{}{}
	hears := x.hears
	x.mutex.Unlock()
	if hears {
		e.due()
	}
}

func (x *exchange) remove(e *ear) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	delete(x.ears, e)
}

// tell calls those that a notification is for; all when payload is empty.
func (x *exchange) tell(payload string) {
	x.mutex.Lock()
	var all []*ear
	for e := range x.ears {
		if payload == "" || e.payload == payload {
			all = append(all, e)
		}
	}
	x.mutex.Unlock()
	for _, e := range all {
		e.due()
	}
}

// keep keeps the connection until ctx ends or it fails.
func (x *exchange) keep(ctx context.Context) error {
	conn, err := x.connect(ctx)
	if err != nil {
		return fmt.Errorf("pgxstore: listen: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	x.hear(true)
	defer x.hear(false)
	x.tell("") // what came before nobody has heard
	for {
		payload, err := next(ctx, conn, asksAfter)
		switch {
		case err == nil:
			x.tell(payload)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			if err := alive(ctx, conn); err != nil {
				return fmt.Errorf("pgxstore: the connection that listens does not answer: %w", err)
			}
		default:
			return fmt.Errorf("pgxstore: the connection that listens has ended: %w", err)
		}
	}
}

func (x *exchange) hear(hears bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.hears = hears
}

// connect opens the connection and proves that it hears.
func (x *exchange) connect(ctx context.Context) (*pgx.Conn, error) {
	opening, cancel := context.WithTimeout(ctx, connectsWithin)
	defer cancel()
	conn, err := pgx.ConnectConfig(opening, x.listen.Copy())
	if err != nil {
		return nil, err
	}
	if _, err = conn.Exec(opening, "listen "+channel); err == nil {
		err = x.prove(ctx, conn)
	}
	if err != nil {
		_ = conn.Close(opening)
		return nil, err
	}
	return conn, nil
}

var errDeaf = errors.New("it does not hear a notification that was sent over the pool; give Options.Listen the address of the server that the pool leads to, not of a pooler that gives each transaction another connection")

// prove has the connection hear a notification that nobody else sends.
func (x *exchange) prove(ctx context.Context, conn *pgx.Conn) error {
	proof := x.place + "\x01" + rand.Text() // no consumer's name has such a character
	within := time.Now().Add(provesWithin)
	sending, cancel := context.WithDeadline(ctx, within)
	defer cancel()
	if err := x.send(sending, proof); err != nil {
		return err
	}
	for {
		switch heard, err := next(ctx, conn, time.Until(within)); {
		case err == nil && heard == proof:
			return nil
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return errDeaf
		case err != nil:
			return err
		}
	}
}

// next waits for a notification.
func next(ctx context.Context, conn *pgx.Conn, most time.Duration) (payload string, err error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	n, err := conn.WaitForNotification(ctx)
	if err != nil {
		return "", err
	}
	return n.Payload, nil
}

// alive asks the server something: a connection that is dead is silent, too.
func alive(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectsWithin)
	defer cancel()
	return conn.Ping(ctx)
}
