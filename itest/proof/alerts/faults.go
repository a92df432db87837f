//go:build unix

package alerts

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/services/pgproxy"
)

type fault struct {
	// says describes the fault in a few words.
	says string
	// alerts are the names of the alerts that must fire during the fault and must be resolved after its
	// repair.
	alerts []string
	// breaks starts the fault. The proof calls on in every turn while the fault lasts. mends repairs the
	// fault. Each of the three may be nil.
	breaks func(context.Context) error
	on     func(ctx context.Context, since time.Duration) error
	mends  func(context.Context) error
}

// rounds returns the faults. Each inner list is a round: the proof produces its faults at the same time.
func (r *run) rounds() [][]fault {
	return [][]fault{append(append(r.messages(), r.work()...), r.forgery()), {r.cuts()}, {r.deployment(), r.clock()}, {r.changes()}, {r.down()}}
}

// messages returns the faults that messages cause.
func (r *run) messages() []fault {
	copied, twice := r.name(), r.name()
	return []fault{
		{says: "30 copies of one message, each half second", alerts: []string{"SemelDuplicateSpike"}, on: func(context.Context, time.Duration) error {
			var all []*kgo.Record
			for range 30 {
				all = append(all, record(billing, copied, made, `{"amount": 2}`))
			}
			r.Kafka.Produce(all...)
			return nil
		}},
		{says: "one id with two contents", alerts: []string{"SemelConflict"}, breaks: func(context.Context) error {
			r.send(billing, twice, made, `{"amount": 3}`)
			r.send(billing, twice, made, `{"amount": 4}`)
			return nil
		}},
		{says: "a type that no handler has", alerts: []string{"SemelUnknownType"}, breaks: func(context.Context) error {
			r.send(billing, r.name(), "payment.renamed", `{}`)
			return nil
		}},
		{says: "a message that fails for good", alerts: []string{"SemelParked"}, breaks: func(context.Context) error {
			r.send(billing, r.name(), made, `{"amount": "much"}`)
			return nil
		}, mends: func(ctx context.Context) error {
			return r.operate(ctx, "messages", "discard", "--all", "--yes", "--store", "shop", "--because", "proof")
		}},
		{says: "the first version of a stream is missing", alerts: []string{"SemelGap"}, breaks: func(context.Context) error {
			if r.Plant != plantUnbroken {
				r.send(ordering, r.name(), made, `{"amount": 5, "order": "gap", "version": 2}`)
			}
			return nil
		}, mends: func(context.Context) error {
			r.send(ordering, r.name(), made, `{"amount": 5, "order": "gap", "version": 1}`)
			return nil
		}},
		{says: "markers were deleted, and a copy comes", alerts: []string{"SemelDoubledEffectCaught"}, breaks: func(ctx context.Context) error {
			var known string
			if err := r.pool.QueryRow(ctx, `select number from invoices limit 1`).Scan(&known); err != nil {
				return err
			}
			_, err := r.pool.Exec(ctx, `delete from semel_markers where scope in (select number from semel_scopes where consumer = '`+guarded+`')`)
			r.send(guarded, known, made, `{"amount": 1}`)
			return err
		}},
	}
}

// work returns the faults that processes cause.
func (r *run) work() []fault {
	frozen, released, thawed := false, false, false
	return []fault{
		{says: "the endpoint takes a second, and too much comes", alerts: []string{"SemelPendingAge", "SemelBacklogBehindLowLag"}, breaks: func(context.Context) error {
			r.endpoint.slow.Store(int64(time.Second))
			r.many(calling, 1500)
			return nil
		}, on: func(context.Context, time.Duration) error {
			r.many(calling, 10)
			return nil
		}, mends: func(context.Context) error {
			r.endpoint.slow.Store(0)
			return nil
		}},
		{says: "a process with claims is frozen, and the claims are released", alerts: []string{"SemelStaleClaims"}, on: func(ctx context.Context, since time.Duration) (err error) {
			switch {
			case since > 10*time.Second && !frozen:
				frozen, err = true, r.second.Freeze()
			case since > 12*time.Second && !released:
				released, err = true, r.operate(ctx, "messages", "release", "--all", "--consumer", calling, "--store", "shop", "--because", "proof")
				if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
					err = nil // meanwhile the other process has completed some of these messages
				}
			case since > 16*time.Second && !thawed:
				thawed, err = true, r.second.Thaw()
			}
			return err
		}},
		{says: "a session locks a row that handlers write, and 12,000 messages arrive", alerts: []string{"SemelUnsettled", "SemelLag"}, breaks: func(ctx context.Context) (err error) {
			if r.lock, err = r.pool.Begin(ctx); err == nil {
				_, err = r.lock.Exec(ctx, `select n from gate for update`)
			}
			r.many(trailing, 12_000)
			return err
		}, mends: func(ctx context.Context) error {
			err := r.lock.Rollback(ctx)
			r.lock = nil
			return err
		}},
		{says: "the store of leased keys is killed", alerts: []string{"SemelResidualRisk"}, breaks: func(context.Context) error {
			r.redis.Kill()
			return nil
		}, mends: func(context.Context) error {
			r.redis.Start()
			return nil
		}},
		{says: "a replay of a consumer", alerts: []string{"SemelReplayRuns"}, breaks: func(context.Context) (err error) {
			command := r.first.Command
			command.Args, command.Log, command.Summary = []string{"replay", "start", repeated, "--rate", "1", "--because", "proof"}, "replay.log", "replay.json"
			r.replay, err = command.Start()
			return err
		}, mends: func(ctx context.Context) error { return r.operate(ctx, "replay", "stop", "1", "--because", "proof") }},
		{says: "the reaper's last walk is dated back", alerts: []string{"SemelReaperBehind"}, on: func(ctx context.Context, _ time.Duration) error {
			return r.walked(ctx, "3 days") // repeated in every turn, because the reaper also runs and updates the row
		}, mends: func(ctx context.Context) error { return r.walked(ctx, "0 days") }},
	}
}

// walked makes the reaper look late: it dates the reaper's last pass back by the retention plus `behind`.
func (r *run) walked(ctx context.Context, behind string) error {
	done, err := r.pool.Exec(ctx, `update semel_retention set walked_to = clock_timestamp() - keep_ms * interval '1 millisecond' - $1::text::interval where consumer = '`+keeping+`'`, behind)
	if err == nil && done.RowsAffected() != 1 {
		err = fmt.Errorf("%d consumers have a retention", done.RowsAffected())
	}
	return err
}

// cuts loses the replies to commits.
func (r *run) cuts() fault {
	var rule *pgproxy.Rule
	return fault{says: "the second process's connections are cut at COMMIT", alerts: []string{"SemelUnknownCommits"}, breaks: func(context.Context) error {
		rule = r.proxy.CutReply(pgproxy.Commit)
		return nil
	}, on: func(context.Context, time.Duration) error {
		r.many(connecting, 5)
		return nil
	}, mends: func(context.Context) error {
		rule.Remove()
		return nil
	}}
}

// changes gives a consumer with on_failure: continue a new identity, so that the consumer refuses to start.
// The other consumers of the process keep running. A restart would not help, so the process stays alive and
// only this consumer is not ready.
func (r *run) changes() fault {
	return fault{says: "a consumer cannot start: its identity is another than the store knows", alerts: []string{"SemelNotReady"},
		breaks: func(ctx context.Context) error {
			if err := r.again(ctx, changedPolicy, false); err != nil {
				return err
			}
			// While the process starts, none of its consumers is ready.
			alone, err := r.turns(ctx, untilFiring, func(context.Context) (bool, error) {
				now, err := r.prometheus.Now(`ALERTS{time="scaled", alertstate="firing"}`)
				return len(now) == 1 && now[0].Labels["alertname"] == "SemelNotReady" && now[0].Labels["consumer"] == joining, err
			})
			if err == nil && !alone {
				err = fmt.Errorf("SemelNotReady must fire for %s only", joining)
			}
			return err
		},
		mends: func(ctx context.Context) error { return r.again(ctx, secondPolicy, true) }}
}

// again kills the second process and starts it with another policy. again kills the process instead of
// stopping it, because a process with a consumer that could not start exits with an error.
func (r *run) again(ctx context.Context, policy string, wait bool) (err error) {
	if err = r.second.Kill(); err != nil {
		return err
	}
	if r.second.Policy = policy; wait {
		return r.start(ctx, r.second)
	}
	return r.second.Start()
}

// deployment makes every message of a consumer fail permanently, as after a bad deployment. The repair
// discards the messages that were parked before the circuit breaker opened.
func (r *run) deployment() fault {
	works := func(ctx context.Context, n int) error {
		_, err := r.pool.Exec(ctx, `update works set n = $1`, n)
		return err
	}
	return fault{says: "after a start every message of a consumer fails for good", alerts: []string{"SemelBreakerOpen"}, breaks: func(ctx context.Context) error {
		if err := works(ctx, 0); err != nil {
			return err
		}
		r.many(failing, 50)
		return r.again(ctx, secondPolicy, false)
	}, mends: func(ctx context.Context) error {
		if err := works(ctx, 1); err != nil {
			return err
		}
		return r.operate(ctx, "messages", "discard", "--all", "--yes", "--store", "shop", "--because", "proof")
	}}
}

// clock gives rows timestamps in the future. Such rows exist after a database whose clock was ahead got its
// clock corrected.
func (r *run) clock() fault {
	return fault{says: "the database's clock was a day ahead", alerts: []string{"SemelClockSetBack"}, breaks: func(context.Context) error {
		r.endpoint.slow.Store(int64(time.Second))
		r.many(calling, 300)
		return nil
	}, on: func(ctx context.Context, _ time.Duration) error {
		_, err := r.pool.Exec(ctx, `update semel_inbox set changed_at = changed_at + interval '1 day', due_at = due_at + interval '1 day'
			where number in (select number from semel_inbox where state = 'RECEIVED' and consumer = '`+calling+`' limit 5 for update skip locked)`)
		return err
	}, mends: func(context.Context) error {
		r.endpoint.slow.Store(0)
		return nil
	}}
}

// down stops the database. With restart_on_outage the second process is not alive after ten seconds without a
// database. SemelNotAlive has further causes, but in `semel run` none of them lasts for long: handlers of a
// policy obey their timeouts, and with on_failure: exit a process ends as soon as its other consumers are
// drained. consumer.TestAlive and the tests of the assembly cover these causes.
func (r *run) down() fault {
	return fault{says: "the database is stopped", alerts: []string{"SemelNotAlive", "SemelStoreNotSampled"}, breaks: func(context.Context) error {
		r.Server.Stop()
		return nil
	}, mends: func(context.Context) error {
		r.Server.Start()
		return nil
	}}
}

// operate runs an operator's command.
func (r *run) operate(ctx context.Context, args ...string) error {
	_, err := r.first.Semel(ctx, args...)
	return err
}
