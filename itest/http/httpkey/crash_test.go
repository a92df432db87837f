package httpkey

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/itest/worlds/processes"
	"github.com/semel-go/semel/pgxstore"
)

// order is the set of instructions that a process of the API gets.
type order struct {
	DSN, Listen string
	// Provider is the address that the handler calls under a leased key, or "".
	Provider string
	// Stepped makes the handler call the provider twice, in steps. Completes makes the process complete abandoned
	// requests.
	Stepped, Completes bool
	// Naive makes the process handle requests without the middleware of package httpkey, so a repeated request places
	// another order.
	Naive bool
}

func TestMain(m *testing.M) { children.Main(m, serveUntilKilled) }

// serveUntilKilled serves the API until the process is killed.
func serveUntilKilled(o order) error {
	pool, err := pgxpool.New(context.Background(), o.DSN+"&pool_max_conns=4")
	if err != nil {
		return err
	}
	store, err := pgxstore.New(pool, pgxstore.Options{})
	if err != nil {
		return err
	}
	if o.Naive {
		return http.ListenAndServe(o.Listen, naive(pool))
	}
	c, l := config(), lease()
	c.Timeout, l.Lease = 500*time.Millisecond, time.Second
	g, err := httpkey.New(store, c)
	h := http.HandlerFunc(placeOrder)
	if o.Completes {
		// A process that completes requests is not killed by the test. The timeouts of this process are long, so that
		// no other process completes its requests on a slow machine.
		c.Timeout, l.Lease = 20*time.Second, 30*time.Second
	}
	if o.Provider != "" {
		h = charge(o.Provider)
		if o.Stepped {
			h, l.Stepped, l.Completion = stepsHandler(o.Provider), true, &httpkey.Completion{After: time.Second}
		}
		g, err = httpkey.NewLeased(store, c, l)
	}
	if err != nil {
		return err
	}
	h = g.ProtectFunc(h).ServeHTTP
	if o.Completes {
		if err := complete(g, h); err != nil {
			return err
		}
	}
	return http.ListenAndServe(o.Listen, h)
}

// placeOrder handles a request: it places an order in the transaction of the guard.
func placeOrder(w http.ResponseWriter, r *http.Request) {
	tx, err := httpkey.TxFrom[pgx.Tx](r.Context())
	number, err := place(r, tx, err)
	writePlaced(w, number, err)
}

func writePlaced(w http.ResponseWriter, number int64, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, "order %d", number)
}

// naive handles requests without a guard. A repeated request places another order.
func naive(pool *pgxpool.Pool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var number int64
		err := pgx.BeginFunc(r.Context(), pool, func(tx pgx.Tx) (err error) {
			number, err = place(r, tx, nil)
			return err
		})
		writePlaced(w, number, err)
	})
}

// place places an order, but if err is set, place only returns err.
func place(r *http.Request, tx pgx.Tx, err error) (number int64, _ error) {
	body, _ := io.ReadAll(r.Body)
	if err == nil {
		_, err = tx.Exec(r.Context(), "insert into effects values ($1)", string(body))
	}
	if err == nil {
		err = tx.QueryRow(r.Context(), "select nextval('numbers')").Scan(&number)
	}
	return number, err
}

// charge handles a request: it calls a provider with an idempotency key.
func charge(provider string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, _ := httpkey.AttemptFrom(r.Context())
		q, err := http.NewRequestWithContext(r.Context(), http.MethodPost, provider, strings.NewReader(a.IdempotencyKey))
		var answer *http.Response
		if err == nil {
			answer, err = http.DefaultClient.Do(q)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, answer.Body)
	}
}

type process struct {
	*exec.Cmd
	url string
	log *bytes.Buffer
}

func start(t *testing.T, o order) *process {
	t.Helper()
	o.Listen = must.Get(proof.FreeAddress())(t)
	p := &process{Cmd: children.Command(context.Background(), t, o), url: "http://" + o.Listen + "/orders", log: &bytes.Buffer{}}
	p.Stderr = p.log
	must.OK(t, p.Start())
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// answer is the answer that a client got.
type answer struct {
	Status   int
	Body     string
	Replayed bool
}

// ask sends a request once.
func (p *process) ask(ctx context.Context, key string) (answer, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(key))
	if err != nil {
		return answer{}, err
	}
	q.Header.Set("X-Account", "a")
	q.Header.Set(httpkey.Header, `"`+key+`"`)
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return answer{}, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return answer{r.StatusCode, string(body), r.Header.Get(httpkey.ReplayedHeader) == "true"}, err
}

// insist repeats a request until it has a final answer, as the contract requires.
func (p *process) insist(ctx context.Context, t *testing.T, key string) answer {
	t.Helper()
	for {
		a, err := p.ask(ctx, key)
		if err == nil && a.Status < 300 {
			return a
		}
		if ctx.Err() != nil {
			t.Fatalf("no answer came: %+v, %v; its log:\n%s", a, err, p.log)
		}
		processes.Pause(ctx, 50*time.Millisecond) // a shorter pause than Retry-After says
	}
}

// point is a place in the program at which a process is killed or frozen.
type point struct {
	name string
	hold func(*pgproxy.Proxy) *pgproxy.Rule
}

var markers = pgproxy.Containing("semel_markers")

func killBefore(m pgproxy.Match) func(*pgproxy.Proxy) *pgproxy.Rule {
	return func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldRequest(pgproxy.Nth(1, m)) }
}

func killAfter(m pgproxy.Match) func(*pgproxy.Proxy) *pgproxy.Rule {
	return func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldReply(pgproxy.Nth(1, m)) }
}

var points = []point{
	{"before the mark", killBefore(markers)},
	{"after the mark", killAfter(markers)},
	{"before the effect", killBefore(pgproxy.Containing("insert into effects"))},
	{"after the effect", killAfter(pgproxy.Containing("insert into effects"))},
	{"after the answer is written", killAfter(pgproxy.Containing("semel_results"))},
	{"before the commit", killBefore(pgproxy.Commit)},
	{"after the commit", killAfter(pgproxy.Commit)},
}

func TestLaw1AProcessThatDiesOrFreezesLeavesAllOrNothing(t *testing.T) {
	dsn := services.Postgres(t)
	pool := openPool(t, dsn)
	must.Get(pool.pool.Exec(t.Context(), "create sequence numbers"))(t)
	for how, stop := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "frozen": syscall.SIGSTOP} {
		for _, at := range points {
			if how == "frozen" && (at.name == "before the mark" || at.name == "before the effect") {
				// this point is left out: its result is the same as at later points, and the server needs eleven
				// seconds to end the transaction
				continue
			}
			t.Run("F2_"+how+"_"+at.name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				key := t.Name()
				proxy := pgproxy.Start(t, dsn)
				first, heir := start(t, order{DSN: proxy.DSN()}), start(t, order{DSN: dsn})
				first.insist(ctx, t, "warm "+key)
				rule := at.hold(proxy)
				told := make(chan error, 1)
				go func() { _, err := first.ask(ctx, key); told <- err }()
				if err := rule.Wait(ctx); err != nil {
					t.Fatalf("it never came there; its log:\n%s", first.log)
				}
				must.OK(t, first.Process.Signal(stop))
				if stop == syscall.SIGKILL {
					first.kill()
					if err := <-told; err == nil {
						t.Error("it answered before it died")
					}
				}
				rule.Remove()
				a := heir.insist(ctx, t, key)
				if stop == syscall.SIGSTOP {
					_ = first.Process.Signal(syscall.SIGCONT)
					<-told
					if b := first.insist(ctx, t, key); b.Body != a.Body {
						t.Errorf("the thawed process answers %+v, and its successor %+v", b, a)
					}
				}
				if b := heir.insist(ctx, t, key); !b.Replayed || b.Body != a.Body {
					t.Errorf("the copy gets %+v, the first %+v", b, a)
				}
				if n := pool.count(t, key); n != 1 {
					t.Errorf("%d effects", n)
				}
			})
		}
	}
}

// provider is a payment provider that charges once for each key.
type provider struct {
	mutex sync.Mutex
	calls map[string]int // number of calls by key; guarded by mutex
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, _ := io.ReadAll(r.Body)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.calls[string(key)]++
	_ = json.NewEncoder(w).Encode("charged under " + string(key))
}

func TestLaw5AProcessThatDiesLeavesAKeyThatIsCalledForAgainUnderTheSameKey(t *testing.T) {
	dsn := services.Postgres(t)
	openPool(t, dsn)
	keys := pgproxy.Containing("semel_keys")
	for _, at := range []point{
		{"before the claim", killBefore(keys)},
		{"after the claim", killAfter(pgproxy.Commit)},
		{"before the end", func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldRequest(pgproxy.Nth(2, pgproxy.Commit)) }},
		{"after the end", func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldReply(pgproxy.Nth(2, pgproxy.Commit)) }},
	} {
		t.Run("F1_"+at.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			other := &provider{calls: map[string]int{}}
			server := httptest.NewServer(other)
			defer server.Close()
			proxy := pgproxy.Start(t, dsn)
			first, heir := start(t, order{DSN: proxy.DSN(), Provider: server.URL}), start(t, order{DSN: dsn, Provider: server.URL})
			first.insist(ctx, t, "warm "+t.Name())
			rule := at.hold(proxy)
			go func() { _, _ = first.ask(ctx, t.Name()) }()
			if err := rule.Wait(ctx); err != nil {
				t.Fatalf("it never came there; its log:\n%s", first.log)
			}
			first.kill()
			rule.Remove()
			a := heir.insist(ctx, t, t.Name())
			if b := heir.insist(ctx, t, t.Name()); !b.Replayed || b.Body != a.Body {
				t.Errorf("the copy gets %+v, the first %+v", b, a)
			}
			if len(other.calls) != 2 { // one call from the warm-up and one from the case
				t.Errorf("the provider was called under %d keys", len(other.calls))
			}
		})
	}
}
