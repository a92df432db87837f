package consumer_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// misbehaviours contains faulty functions of a user. A call of each function counts as an attempt of the message.
var misbehaviours = map[string]func(ctx context.Context) error{
	"an_error":                 func(context.Context) error { return errTest },
	"a_panic":                  func(context.Context) error { panic("no") },
	"Goexit":                   func(context.Context) error { runtime.Goexit(); return nil },
	"the_error_of_its_context": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	"nil_after_its_timeout":    func(ctx context.Context) error { <-ctx.Done(); return nil },
	"nil_when_it_was_cut":      func(context.Context) error { pass(45 * time.Second); return nil },
	"an_error_when_it_was_cut": func(context.Context) error { pass(45 * time.Second); return errTest },
}

// waysOfEffects contains a function for each kind of consumer. Each function runs a consumer whose handler first calls
// the function fails.
var waysOfEffects = map[string]func(t *testing.T, st *memstore.Store, fails func(context.Context) error, c consumer.Config) semel.Counts{
	"in_a_transaction": func(t *testing.T, st *memstore.Store, fails func(context.Context) error, c consumer.Config) semel.Counts {
		return runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if err := fails(ctx); err != nil {
				return err
			}
			return add(ctx, tx, m)
		}, c)
	},
	"under_a_claim": func(t *testing.T, st *memstore.Store, fails func(context.Context) error, c consumer.Config) semel.Counts {
		c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true
		return runsLeased(t, st, func(ctx context.Context, _ consumer.Call, _ *semel.Message) error { return fails(ctx) }, c)
	},
	"under_a_claim_before_its_answer": func(t *testing.T, st *memstore.Store, fails func(context.Context) error, c consumer.Config) semel.Counts {
		c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true
		return callsThen(t, st, func(ctx context.Context, _ *semel.Message) (int64, error) { return 1, fails(ctx) }, addAnswer, c)
	},
	"under_a_claim_after_its_answer": func(t *testing.T, st *memstore.Store, fails func(context.Context) error, c consumer.Config) semel.Counts {
		c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true
		return callsThen(t, st, answers1, failsOrAdds(fails), c)
	},
	"after_a_lookup_before_its_answer": func(t *testing.T, st *memstore.Store, fails func(context.Context) error, c consumer.Config) semel.Counts {
		return callsThen(t, st, func(ctx context.Context, _ *semel.Message) (int64, error) { return 1, fails(ctx) }, addAnswer, c)
	},
	"after_a_lookup_after_its_answer": func(t *testing.T, st *memstore.Store, fails func(context.Context) error, c consumer.Config) semel.Counts {
		return callsThen(t, st, answers1, failsOrAdds(fails), c)
	},
	"under_a_key": func(t *testing.T, _ *memstore.Store, fails func(context.Context) error, c consumer.Config) semel.Counts {
		c.Retry.OnExhausted, c.OnConflict, c.OnBadIdentity, c.OnPrecondition = consumer.ActionDeadLetter, consumer.ActionDeadLetter, consumer.ActionDeadLetter, consumer.ActionDeadLetter
		return runsKeyed(t, memstore.NewKeys(), keptKeys, func(ctx context.Context, _ consumer.Call, _ *semel.Message) error { return fails(ctx) }, c)
	},
}

func answers1(context.Context, *semel.Message) (int64, error) { return 1, nil }

func failsOrAdds(fails func(context.Context) error) func(context.Context, *memstore.Tx, int64, *semel.Message) error {
	return func(ctx context.Context, tx *memstore.Tx, n int64, m *semel.Message) error {
		if err := fails(ctx); err != nil {
			return err
		}
		return addAnswer(ctx, tx, n, m)
	}
}

// burying is an endless source that supports dead letters.
type burying struct{ *listSource }

func (burying) Info() source.Info {
	return source.Info{DeadLetters: func(string) error { return nil }}
}

func TestMisbehaviourIsAnAttemptInEveryWay(t *testing.T) {
	const attempts = 4
	for way, run := range waysOfEffects {
		for name, does := range misbehaviours {
			for bad, ends := range map[int]string{attempts - 1: "then_it_takes_effect", attempts: "then_it_is_set_aside"} {
				bubble(t, way+"/"+name+"/"+ends, func(t *testing.T) {
					st, src, ran := memstore.New(), burying{newListSource(message("m", `{}`))}, 0
					src.endless = true
					c := config(src)
					c.Retry = consumer.RetryPolicy{MaxAttempts: attempts, InitialDelay: time.Second, MaxDelay: time.Second, DisableBreaker: true}
					c.Workers, c.Lanes, c.IdleExit = 1, consumer.LanesNone, 10*time.Minute
					counts := run(t, st, func(ctx context.Context) error {
						if ran++; ran <= bad {
							return does(ctx)
						}
						return nil
					}, c)
					in := counts.Inbox
					applied, aside := counts.Applied+in.Applied, counts.Parked+counts.DeadLettered+in.Parked
					wantApplied, wantAside := int64(1), int64(0)
					if bad == attempts {
						wantApplied, wantAside = 0, 1
					}
					if ran != attempts || applied != wantApplied || aside != wantAside || len(src.settled) != 1 {
						t.Errorf("the handler ran %d times, %d settled, %+v", ran, len(src.settled), counts)
					}
					if e := effect(t, st, "m"); e != "" && (e != "1" || wantApplied == 0) {
						t.Errorf("the effect is %q", e)
					}
					if counts.Parked+in.Parked > 0 {
						if r := row(t, st, "m"); r.Attempts != attempts {
							t.Errorf("%d attempts: %s", r.Attempts, r.LastError)
						}
					}
				})
			}
		}
	}
}
