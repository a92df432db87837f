package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// killedAt is a process that dies while it runs a step. From then on the process cannot reach the store.
type killedAt struct {
	step  string
	point faults.Point
	// ran is the last step that started. next is the step that runs next.
	ran, next atomic.Value
	dead      atomic.Bool
	runs      atomic.Int64
}

func (k *killedAt) plan(stop func()) faults.Plan {
	return faults.Plan{At: func(point faults.Point, _ int) {
		now := k.ran.Load()
		if point == faults.AfterMark {
			now = k.next.Load()
		}
		if point == k.point && now == k.step && k.dead.CompareAndSwap(false, true) {
			stop()
		}
	}}
}

// fail is the memstore.Fail of the store that the process uses.
func (k *killedAt) fail(string) error {
	if k.dead.Load() {
		return errors.New("its process is dead")
	}
	return nil
}

// steps returns the consumer's steps. The steps record their runs.
func (k *killedAt) steps() (all []consumer.Step[*memstore.Tx]) {
	names := []string{"reserve", "charge", "ship"}
	for i, name := range names {
		all = append(all, countedStep(name, func(_ context.Context, _ *memstore.Tx, _ *semel.Message, done consumer.Done) ([]byte, error) {
			if k.runs.Add(1) > 100 {
				return nil, semel.Park("a step runs too often")
			}
			k.ran.Store(name)
			if i+1 < len(names) {
				k.next.Store(names[i+1])
			}
			if i > 0 && string(done.Output(names[i-1])) != names[i-1] {
				return nil, semel.Park("the output of the step before it is missing")
			}
			return []byte(name), nil
		}))
	}
	return all
}

// A process is killed during each step, at each point. Completed steps must not run again.
func TestStepsOfTheKilled(t *testing.T) {
	for done, step := range []string{"reserve", "charge", "ship"} {
		for _, point := range []faults.Point{faults.AfterMark, faults.AfterEffect, faults.BeforeCommit, faults.AfterCommit} {
			bubble(t, fmt.Sprintf("C11_law_1_killed_with_%d_steps_done_at_%s_the_next_process_goes_on", done, point), func(t *testing.T) {
				k := &killedAt{step: step, point: point}
				k.next.Store("reserve")
				st := memstore.New(memstore.Fail(k.fail))
				c := steppedConfig(newListSource())
				c.Workers, c.Drain = 1, time.Second
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				fillInbox(t, st, 1)
				killed, err := consumer.NewSteps(st, k.steps(), c, k.plan(stop))
				if err != nil {
					t.Fatal(err)
				}
				_ = killed.Run(ctx) // the run ends when its process dies
				if !k.dead.Load() {
					t.Fatal("it was not killed")
				}
				k.dead.Store(false) // the store works for other processes
				all := rows(t, st)
				want := done
				if point == faults.AfterCommit {
					want++
				}
				if len(all) != 1 || len(all[0].Steps) != want {
					t.Fatalf("%d steps are done when it is killed, want %d", len(all[0].Steps), want)
				}
				pass(consumer.Defaults().Inbox.Lease + time.Second)
				stepped(t, st, steppedConfig(newListSource()), k.steps()...)
				wantSteps(t, st, all[0].Key.ID, store.StateCompleted, "reserve", "charge", "ship")
			})
		}
	}
}
