package httpkey

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// complete completes abandoned requests repeatedly while the process lives, with a shorter interval than Run.
func complete(g *httpkey.Guard, h http.Handler) error {
	c, err := g.Completer(h)
	if err != nil {
		return err
	}
	go func() {
		for ctx := context.Background(); ; processes.Pause(ctx, 200*time.Millisecond) {
			if err := c.Pass(ctx); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
	return nil
}

// stepsHandler returns a handler with two steps: charge a card, and then send a mail, both at the provider.
func stepsHandler(provider string) http.HandlerFunc {
	call := func(what string) func(context.Context, httpkey.Attempt) ([]byte, error) {
		return func(ctx context.Context, a httpkey.Attempt) ([]byte, error) {
			q, err := http.NewRequestWithContext(ctx, http.MethodPost, provider, strings.NewReader(a.Key+" "+what+" "+a.IdempotencyKey))
			if err != nil {
				return nil, err
			}
			answer, err := http.DefaultClient.Do(q)
			if err != nil {
				return nil, err
			}
			defer answer.Body.Close()
			return io.ReadAll(answer.Body)
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		var made bytes.Buffer
		for _, step := range []string{"charge", "mail"} {
			out, err := httpkey.Step(r.Context(), step, call(step))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			made.Write(out)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = made.WriteTo(w)
	}
}

// callsOf returns the number of calls to the provider for a request, by step and key.
func (p *provider) callsOf(request string) map[string]int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	calls := map[string]int{}
	for call, n := range p.calls {
		if rest, is := strings.CutPrefix(call, request+" "); is {
			calls[rest] = n
		}
	}
	return calls
}

// hasAnswer reports whether the store has the answer to a request.
func (p pool) hasAnswer(t *testing.T, key string) (is bool) {
	t.Helper()
	must.OK(t, p.pool.QueryRow(context.Background(), "select exists (select 1 from semel_keys where id = $1 and ended = 1)", []byte(key)).Scan(&is))
	return is
}

func commit(n int) pgproxy.Match { return pgproxy.Nth(n, pgproxy.Commit) }

// nthUpdate matches the n-th update of an existing key. A key is updated by the note, by the end of each
// step, and by the end of the request.
func nthUpdate(n int) pgproxy.Match { return pgproxy.Nth(n, pgproxy.Containing("set ended")) }

func TestF2WhatAProcessThatDiesLeavesIsFinishedWithoutItsClient(t *testing.T) {
	dsn := services.Postgres(t)
	pool := openPool(t, dsn)
	// all cases share this provider, because each new process completes all abandoned requests
	other := &provider{calls: map[string]int{}}
	server := httptest.NewServer(other)
	t.Cleanup(server.Close)
	// A new process also completes abandoned requests of other cases. If the process ended with its own case, requests
	// of other cases would stay incomplete.
	whole := t
	for _, at := range []struct {
		name string
		hold func(*pgproxy.Proxy) *pgproxy.Rule
		left bool // whether the process was killed before the request was complete, so that another process completes it
	}{
		{"F2_after_the_claim", func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldReply(commit(1)) }, false},
		{"F2_after_the_note", func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldReply(commit(2)) }, true},
		{"F2_after_the_effect_of_the_first_step", func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldRequest(nthUpdate(2)) }, true},
		{"F2_after_the_first_step", func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldReply(commit(4)) }, true},
		{"F2_after_the_effect_of_the_second_step", func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldRequest(nthUpdate(3)) }, true},
		{"F2_after_the_second_step", func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldRequest(nthUpdate(4)) }, true},
		{"F2_after_the_end", func(p *pgproxy.Proxy) *pgproxy.Rule { return p.HoldReply(commit(7)) }, true},
	} {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			proxy := pgproxy.Start(t, dsn)
			first := start(t, order{DSN: proxy.DSN(), Provider: server.URL, Stepped: true})
			first.insist(ctx, t, "warm-"+at.name)
			rule := at.hold(proxy)
			go func() { _, _ = first.ask(ctx, at.name) }()
			if err := rule.Wait(ctx); err != nil {
				t.Fatalf("it never came there; its log:\n%s", first.log)
			}
			first.kill()
			rule.Remove()
			heir := start(whole, order{DSN: dsn, Provider: server.URL, Stepped: true, Completes: true})
			for at.left && !pool.hasAnswer(t, at.name) {
				if processes.Pause(ctx, 50*time.Millisecond); ctx.Err() != nil {
					t.Fatalf("no process completes it: %v; the log:\n%s", other.callsOf(at.name), heir.log)
				}
			}
			a := heir.insist(ctx, t, at.name)
			if b := heir.insist(ctx, t, at.name); !b.Replayed || b.Body != a.Body || a.Replayed != at.left {
				t.Errorf("its client gets %+v, and then %+v", a, b)
			}
			calls := other.callsOf(at.name)
			if repeated := strings.HasPrefix(at.name, "F2_after_the_effect"); len(calls) != 2 || (total(calls) == 3) != repeated {
				t.Errorf("the provider was called %v", calls)
			}
		})
	}
}

func total(calls map[string]int) (n int) {
	for _, more := range calls {
		n += more
	}
	return n
}
