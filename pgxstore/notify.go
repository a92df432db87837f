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

// The name of Semel's notification channel in PostgreSQL.
const channel = "semel_due"

// Time limits of the listening connection: for connecting, for receiving its own test notification, and for
// silence before the connection is checked.
const (
	connectsWithin = 10 * time.Second
	provesWithin   = 5 * time.Second
	asksAfter      = 30 * time.Second
)

// exchange sends and receives notifications for the consumers of a store. One of the listening consumers holds the
// connection that receives the notifications for all consumers. When this consumer stops listening, another consumer
// opens a connection.
type exchange struct {
	// The configuration of the listening connection; nil if Options.Listen is not set.
	listen *pgx.ConnConfig
	pool   *pgxpool.Pool
	// The beginning of every payload: the schema and prefix of the tables.
	namespace string
	// The channel keeper is a semaphore: it contains a value while one of the consumers holds the connection for
	// notifications.
	keeper chan struct{}

	mutex     sync.Mutex
	connected bool                   // true while the connection is established; guarded by mutex
	listeners map[*listener]struct{} // guarded by mutex
}

// listener is a listening consumer.
type listener struct {
	payload string
	due     func()
}

// newExchange parses the connection string. The error does not contain the string, because the string may
// include a password.
func newExchange(pool *pgxpool.Pool, o Options) (*exchange, error) {
	x := &exchange{pool: pool, namespace: cmp.Or(o.Schema, "public") + "." + cmp.Or(o.Prefix, "semel_"), keeper: make(chan struct{}, 1), listeners: map[*listener]struct{}{}}
	if o.Listen == "" {
		return x, nil
	}
	config, err := pgx.ParseConfig(o.Listen)
	if err != nil {
		return nil, errors.New("pgxstore: Options.Listen is not a connection string; write postgres://user:password@host:5432/database")
	}
	x.listen = config
	return x, nil
}

// payload returns the payload of a notification for a consumer.
func (x *exchange) payload(consumer string) string { return x.namespace + "/" + consumer }

// Listen implements admin.Notifier. All listening consumers share one connection, which Options.Listen configures. The
// connection is first tested with a notification that is sent over the pool, because behind a pooler in transaction
// mode, LISTEN succeeds but no notification arrives.
func (t *tables) Listen(ctx context.Context, consumer string, due func()) error {
	x := t.exchange
	if x.listen == nil {
		return fmt.Errorf("pgxstore: Options.Listen is not set: %w", semel.ErrUnsupported)
	}
	e := &listener{x.payload(consumer), due}
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

// Notify implements admin.Notifier, with a statement of its own over the pool.
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

// add registers a listening consumer. If the connection is already established, add calls e.due at once, so that the
// consumer looks for rows that it can claim.
func (x *exchange) add(e *listener) {
	x.mutex.Lock()
	x.listeners[e] = struct{}{}
	hears := x.connected
	x.mutex.Unlock()
	if hears {
		e.due()
	}
}

func (x *exchange) remove(e *listener) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	delete(x.listeners, e)
}

// notifyListeners wakes the consumer to which a notification is addressed. If payload is empty, notifyListeners wakes
// all consumers.
func (x *exchange) notifyListeners(payload string) {
	x.mutex.Lock()
	var all []*listener
	for e := range x.listeners {
		if payload == "" || e.payload == payload {
			all = append(all, e)
		}
	}
	x.mutex.Unlock()
	for _, e := range all {
		e.due()
	}
}

// keep receives notifications until ctx ends or the connection fails.
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
	x.setListening(true)
	defer x.setListening(false)
	x.notifyListeners("") // notifications may have been lost before this time
	for {
		payload, err := waitNotification(ctx, conn, asksAfter)
		switch {
		case err == nil:
			x.notifyListeners(payload)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			if err := ping(ctx, conn); err != nil {
				return fmt.Errorf("pgxstore: the listening connection does not answer: %w", err)
			}
		default:
			return fmt.Errorf("pgxstore: the listening connection has ended: %w", err)
		}
	}
}

func (x *exchange) setListening(hears bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.connected = hears
}

// connect opens the listening connection and tests it.
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

var errDeaf = errors.New("it does not receive notifications that are sent over the pool; set Options.Listen to the address of the pool's database server, not to a pooler in transaction mode")

// prove checks that the connection receives notifications, with a unique test notification.
func (x *exchange) prove(ctx context.Context, conn *pgx.Conn) error {
	proof := x.namespace + "\x01" + rand.Text() // consumer names cannot contain \x01
	within := time.Now().Add(provesWithin)
	sending, cancel := context.WithDeadline(ctx, within)
	defer cancel()
	if err := x.send(sending, proof); err != nil {
		return err
	}
	for {
		switch heard, err := waitNotification(ctx, conn, time.Until(within)); {
		case err == nil && heard == proof:
			return nil
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return errDeaf
		case err != nil:
			return err
		}
	}
}

// waitNotification waits for the next notification.
func waitNotification(ctx context.Context, conn *pgx.Conn, most time.Duration) (payload string, err error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	n, err := conn.WaitForNotification(ctx)
	if err != nil {
		return "", err
	}
	return n.Payload, nil
}

// ping pings the server. Without a ping, a broken connection looks like an idle connection.
func ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectsWithin)
	defer cancel()
	return conn.Ping(ctx)
}
