package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// A message that waits between two steps blocks later messages of its key.
func TestTheOrderOfSteps(t *testing.T) {
	bubble(t, "law_6_C11_the_next_message_of_a_key_begins_after_the_last_step_of_the_one_before", func(t *testing.T) {
		st := memstore.New()
		var mutex sync.Mutex
		var order []string
		fails := true
		step := func(name string) consumer.Step[*memstore.Tx] {
			return countedStep(name, func(_ context.Context, _ *memstore.Tx, m *semel.Message, _ consumer.Done) ([]byte, error) {
				mutex.Lock()
				defer mutex.Unlock()
				if name == "charge" && m.Identity.ID == "0" && fails {
					fails = false
					return nil, semel.RetryAfter(errors.New("away"), time.Minute) // the message waits in the inbox
				}
				order = append(order, m.Identity.ID+" "+name)
				return nil, nil
			})
		}
		var all []*semel.Message
		for i := range 3 {
			m := message(fmt.Sprint(i), "{}")
			m.Key = []byte("k")
			all = append(all, m)
		}
		source := newListSource(all...)
		source.endless = true
		c := steppedConfig(source)
		c.Lanes, c.OnParked, c.IdleExit = consumer.LanesKey, consumer.OnParkedBlock, 5*time.Minute
		stepped(t, st, c, step("reserve"), step("charge"))
		if want := []string{"0 reserve", "0 charge", "1 reserve", "1 charge", "2 reserve", "2 charge"}; !slices.Equal(order, want) {
			t.Errorf("the steps ran as %q", order)
		}
		for i := range 3 {
			wantSteps(t, st, fmt.Sprint(i), store.StateCompleted, "reserve", "charge")
		}
	})
}

// A batch never contains two versions of a stream, because the second version can be applied only after the
// first.
func TestTheOrderOfStepsInAStream(t *testing.T) {
	bubble(t, "B9_C11_the_next_version_begins_after_the_last_step_of_the_one_before", func(t *testing.T) {
		st := memstore.New()
		var order []string
		step := func(name string) consumer.Step[*memstore.Tx] {
			return countedStep(name, func(_ context.Context, _ *memstore.Tx, m *semel.Message, _ consumer.Done) ([]byte, error) {
				order = append(order, m.Identity.ID+" "+name)
				return nil, nil
			})
		}
		var all []*semel.Message
		for i := range 3 {
			m := message(fmt.Sprint(i), "{}")
			m.Key, m.Headers = []byte("order"), append(m.Headers, semel.Header{Name: "n", Value: fmt.Append(nil, i+1)})
			all = append(all, m)
		}
		c := steppedConfig(newListSource(all...))
		c.Workers, c.Lanes = 1, consumer.LanesNone
		c.Version = &consumer.VersionPolicy{By: identity.Stream("key").At("header:n")}
		stepped(t, st, c, step("reserve"), step("charge"))
		if want := []string{"0 reserve", "0 charge", "1 reserve", "1 charge", "2 reserve", "2 charge"}; !slices.Equal(order, want) {
			t.Errorf("the steps ran as %q", order)
		}
		for i := range 3 {
			wantSteps(t, st, fmt.Sprint(i), store.StateCompleted, "reserve", "charge")
		}
	})
}

// With NewLeasedSteps a step runs without a transaction, but its completion is recorded.
func TestStepsThatCallOut(t *testing.T) {
	bubble(t, "C11_without_a_transaction_a_step_that_is_done_does_not_call_again", func(t *testing.T) {
		calls := map[string]int{}
		away := 2
		step := func(name string) consumer.Step[consumer.Call] {
			return consumer.Step[consumer.Call]{Name: name, Run: func(_ context.Context, _ consumer.Call, m *semel.Message, done consumer.Done) ([]byte, error) {
				if name == "ship" {
					if away--; away >= 0 {
						return nil, errors.New("away")
					}
					if string(done.Output("charge")) != "charged" {
						t.Error("the step did not get the output of the step before it")
					}
				}
				calls[name+m.IdempotencyKey(name)]++
				return []byte("charged"), nil
			}}
		}
		st := memstore.New()
		source := newListSource(message("1", "{}"))
		source.endless = true
		c := steppedConfig(source)
		c.IdleExit, c.Retry = time.Minute, consumer.RetryPolicy{InitialDelay: time.Second, MaxDelay: time.Second}
		called, err := consumer.NewLeasedSteps(st, []consumer.Step[consumer.Call]{step("charge"), step("ship")}, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := called.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for key, n := range calls {
			if n != 1 {
				t.Errorf("%s was called %d times", key, n)
			}
		}
		if r := row(t, st, "1"); len(calls) != 2 || r.State != store.StateCompleted || len(r.Steps) != 2 {
			t.Errorf("%d calls, %+v", len(calls), r)
		}
	})
}
