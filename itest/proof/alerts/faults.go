//go:build unix

package alerts

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services/pgproxy"
)

type fault struct {
	// A description of the fault in a few words.
	says string
	// The names of the alerts that must fire during the fault and must be resolved after the repair of the fault.
	alerts []string
	// start starts the fault. The proof calls the function on repeatedly while the fault lasts. The function mends
	// repairs the fault. Each of the three functions may be nil.
	start func(context.Context)
	on    func(ctx context.Context, since time.Duration)
	mends func(context.Context)
}

// faultRounds returns the faults. Each inner list is a round: the test produces all faults of a round at the same
// time.
func (r *run) faultRounds() [][]fault {
	return [][]fault{append(append(r.messageFaults(), r.work()...), r.forgery()), {r.lostRepliesFault()}, {r.deployment(), r.clock()}, {r.identityChangeFault()}, {r.databaseOutageFault()}}
}

func (r *run) messageFaults() []fault {
	copied, twice := r.name(), r.name()
	return []fault{
		{says: "30 copies of one message, each half second", alerts: []string{"SemelDuplicateSpike"}, on: func(context.Context, time.Duration) {
			var all []*kgo.Record
			for range 30 {
				all = append(all, record(billing, copied, made, `{"amount": 2}`))
			}
			r.Kafka.Produce(all...)
		}},
		{says: "one id with two contents", alerts: []string{"SemelConflict"}, start: func(context.Context) {
			r.send(billing, twice, made, `{"amount": 3}`)
			r.send(billing, twice, made, `{"amount": 4}`)
		}},
		{says: "a type that no handler has", alerts: []string{"SemelUnknownType"}, start: func(context.Context) {
			r.send(billing, r.name(), "payment.renamed", `{}`)
		}},
		{says: "a message that fails for good", alerts: []string{"SemelParked"}, start: func(context.Context) {
			r.send(billing, r.name(), made, `{"amount": "much"}`)
		}, mends: func(ctx context.Context) {
			r.operate(ctx, "messages", "discard", "--all", "--yes", "--store", "shop", "--because", "proof")
		}},
		{says: "the first version of a stream is missing", alerts: []string{"SemelGap"}, start: func(context.Context) {
			if r.Plant != plantUnbroken {
				r.send(ordering, r.name(), made, `{"amount": 5, "order": "gap", "version": 2}`)
			}
		}, mends: func(context.Context) {
			r.send(ordering, r.name(), made, `{"amount": 5, "order": "gap", "version": 1}`)
		}},
		{says: "markers were deleted, and a copy comes", alerts: []string{"SemelDoubledEffectCaught"}, start: func(ctx context.Context) {
			var known string
			proof.Check(r.pool.QueryRow(ctx, `select number from invoices limit 1`).Scan(&known))
			r.Exec(ctx, `delete from semel_markers where scope in (select number from semel_scopes where consumer = '`+guarded+`')`)
			r.send(guarded, known, made, `{"amount": 1}`)
		}},
	}
}

// work returns the faults that processes cause.
func (r *run) work() []fault {
	frozen, released, thawed := false, false, false
	return []fault{
		{says: "the endpoint takes a second, and too much comes", alerts: []string{"SemelPendingAge", "SemelBacklogBehindLowLag"}, start: func(context.Context) {
			r.slow.Store(int64(time.Second))
			r.publishMany(calling, 1500)
		}, on: func(context.Context, time.Duration) {
			r.publishMany(calling, 10)
		}, mends: func(context.Context) {
			r.slow.Store(0)
		}},
		{says: "a process with claims is frozen, and the claims are released", alerts: []string{"SemelStaleClaims"}, on: func(ctx context.Context, since time.Duration) {
			switch {
			case since > 10*time.Second && !frozen:
				frozen = true
				proof.Check(r.second.Freeze())
			case since > 12*time.Second && !released:
				released = true
				_, err := r.first.Semel(ctx, "messages", "release", "--all", "--consumer", calling, "--store", "shop", "--because", "proof")
				if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 { // 1: the other process has completed some
					proof.Check(err)
				}
			case since > 16*time.Second && !thawed:
				thawed = true
				proof.Check(r.second.Thaw())
			}
		}},
		{says: "a session locks a row that handlers write, and 12,000 messages arrive", alerts: []string{"SemelUnsettled", "SemelLag"}, start: func(ctx context.Context) {
			r.lock = proof.Must(r.pool.Begin(ctx))
			proof.Must(r.lock.Exec(ctx, `select n from gate for update`))
			r.publishMany(trailing, 12_000)
		}, mends: func(ctx context.Context) {
			proof.Check(r.lock.Rollback(ctx))
			r.lock = nil
		}},
		{says: "the store of leased keys is killed", alerts: []string{"SemelResidualRisk"}, start: func(context.Context) {
			r.redis.Kill()
		}, mends: func(context.Context) {
			r.redis.Start()
		}},
		{says: "a replay of a consumer", alerts: []string{"SemelReplayRuns"}, start: func(context.Context) {
			command := r.first.Command
			command.Args, command.Log, command.Summary = []string{"replay", "start", repeated, "--rate", "1", "--because", "proof"}, "replay.log", "replay.json"
			r.replay = proof.Must(command.Start())
		}, mends: func(ctx context.Context) { r.operate(ctx, "replay", "stop", "1", "--because", "proof") }},
		{says: "the reaper's last walk is dated back", alerts: []string{"SemelReaperBehind"}, on: func(ctx context.Context, _ time.Duration) {
			r.delayReaper(ctx, "3 days") // repeatedly, because the reaper (which removes old markers) also runs
		}, mends: func(ctx context.Context) { r.delayReaper(ctx, "0 days") }},
	}
}

// delayReaper makes the reaper, which removes old markers, look late: delayReaper dates the reaper's last pass back by
// the retention plus the parameter behind.
func (r *run) delayReaper(ctx context.Context, behind string) {
	done := proof.Must(r.pool.Exec(ctx, `update semel_retention set walked_to = clock_timestamp() - keep_ms * interval '1 millisecond' - $1::text::interval where consumer = '`+keeping+`'`, behind))
	if done.RowsAffected() != 1 {
		proof.Check(fmt.Errorf("%d consumers have a retention", done.RowsAffected()))
	}
}

// lostRepliesFault returns a fault in which the replies to commits are lost.
func (r *run) lostRepliesFault() fault {
	var rule *pgproxy.Rule
	return fault{says: "the second process's connections are cut at COMMIT", alerts: []string{"SemelUnknownCommits"}, start: func(context.Context) {
		rule = r.proxy.CutReply(pgproxy.Commit)
	}, on: func(context.Context, time.Duration) {
		r.publishMany(connecting, 5)
	}, mends: func(context.Context) {
		rule.Remove()
	}}
}

// identityChangeFault returns a fault in which a consumer with on_failure: continue gets a new identity, so that the
// consumer refuses to start. The other consumers of the process keep running. A restart would not help, so the process
// stays alive and only this consumer is not ready.
func (r *run) identityChangeFault() fault {
	return fault{says: "a consumer cannot start: its identity is another than the store knows", alerts: []string{"SemelNotReady"},
		start: func(ctx context.Context) {
			r.restartWith(ctx, changedPolicy, false)
			// While the process starts, none of its consumers is ready.
			alone := r.publishUntil(ctx, untilFiring, func() bool {
				now := proof.Must(r.prometheus.Now(`ALERTS{time="scaled", alertstate="firing"}`))
				return len(now) == 1 && now[0].Labels["alertname"] == "SemelNotReady" && now[0].Labels["consumer"] == joining
			})
			if !alone {
				proof.Check(fmt.Errorf("SemelNotReady must fire for %s only", joining))
			}
		},
		mends: func(ctx context.Context) { r.restartWith(ctx, secondPolicy, true) }}
}

// restartWith kills the second process and starts it with another policy. The process is killed instead of
// stopped, because a process with a consumer that could not start exits with an error.
func (r *run) restartWith(ctx context.Context, policy string, wait bool) {
	r.second.Kill()
	if r.second.Policy = policy; wait {
		r.start(ctx, r.second)
	} else {
		r.second.Start()
	}
}

// deployment returns a fault in which every message of a consumer fails permanently, as after a bad deployment. The
// repair discards the messages that were parked before the circuit breaker opened.
func (r *run) deployment() fault {
	return fault{says: "after a start every message of a consumer fails for good", alerts: []string{"SemelBreakerOpen"}, start: func(ctx context.Context) {
		r.Exec(ctx, `update works set n = 0`)
		r.publishMany(failing, 50)
		r.restartWith(ctx, secondPolicy, false)
	}, mends: func(ctx context.Context) {
		r.Exec(ctx, `update works set n = 1`)
		r.operate(ctx, "messages", "discard", "--all", "--yes", "--store", "shop", "--because", "proof")
	}}
}

// clock returns a fault in which rows have timestamps in the future. Rows have timestamps in the future after the clock
// of a database was ahead and was then corrected.
func (r *run) clock() fault {
	return fault{says: "the database's clock was a day ahead", alerts: []string{"SemelClockSetBack"}, start: func(context.Context) {
		r.slow.Store(int64(time.Second))
		r.publishMany(calling, 300)
	}, on: func(ctx context.Context, _ time.Duration) {
		r.Exec(ctx, `update semel_inbox set changed_at = changed_at + interval '1 day', due_at = due_at + interval '1 day'
			where number in (select number from semel_inbox where state = 'RECEIVED' and consumer = '`+calling+`' limit 5 for update skip locked)`)
	}, mends: func(context.Context) {
		r.slow.Store(0)
	}}
}

// databaseOutageFault returns a fault in which the database is stopped. With restart_on_outage the second process is
// not alive after ten seconds without a database. SemelNotAlive has further causes, but in `semel run` no such cause
// lasts for long: handlers of a policy obey their timeouts, and with on_failure: exit a process ends as soon as its
// other consumers are drained. The test consumer.TestAlive and the tests of package assembly cover the further causes
// of SemelNotAlive.
func (r *run) databaseOutageFault() fault {
	return fault{says: "the database is stopped", alerts: []string{"SemelNotAlive", "SemelStoreNotSampled"}, start: func(context.Context) {
		r.Server.Stop()
	}, mends: func(context.Context) {
		r.Server.Start()
	}}
}

// operate runs an operator's command.
func (r *run) operate(ctx context.Context, args ...string) {
	proof.Must(r.first.Semel(ctx, args...))
}
