package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// release is a consumer in one of two versions of a service. The two versions determine identities differently.
type release struct {
	t        *testing.T
	store    *memstore.Store
	consumer *consumer.Consumer[*memstore.Tx]
	fail     error // error that the handler returns
}

var (
	byOrder = identity.By("header:order")
	byEvent = identity.By("header:event")
)

// newRelease returns a release. The parameter change may be nil.
func newRelease(t *testing.T, store *memstore.Store, by identity.Identity, former *consumer.PreviousIdentity, change func(*consumer.Config)) *release {
	t.Helper()
	r := &release{t: t, store: store}
	config := consumer.Config{Name: "billing", Identity: by, PreviousIdentity: former, Workers: 2}
	if change != nil {
		change(&config)
	}
	var err error
	r.consumer, err = consumer.New(store, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
		if err := tx.Add("effects", 1); err != nil {
			return err
		}
		if err := tx.Add(string(m.Body), 1); err != nil {
			return err
		}
		return r.fail
	}, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.consumer.Close(context.Background()) })
	return r
}

// newOrderEvent returns a message that has an old and a new identity.
func newOrderEvent(order, event, body string) *semel.Message {
	return &semel.Message{Headers: semel.Headers{{Name: "order", Value: []byte(order)}, {Name: "event", Value: []byte(event)}}, Body: []byte(body)}
}

func (r *release) wantEnding(want source.End, m *semel.Message) {
	r.t.Helper()
	d, err := r.consumer.Process(r.t.Context(), m)
	if err != nil || d.Ending != want {
		r.t.Errorf("%s ends as %v (%v, %v), want %v", m.Body, d.Ending, d.Reason, err, want)
	}
	if want == source.EndConflict && d.Reason != reasonname.FormerConflict { // operators list rows by this reason
		r.t.Errorf("the conflict of %s has the reason %q", m.Body, d.Reason)
	}
}

func effects(store *memstore.Store, name string) string {
	if n := store.Get(name); n != nil {
		return string(n)
	}
	return "0"
}

func TestAnIdentityThatChanges(t *testing.T) {
	former := &consumer.PreviousIdentity{Identity: byOrder}
	t.Run("A7_two_releases_side_by_side_apply_each_message_once", func(t *testing.T) {
		st := memstore.New()
		older := newRelease(t, st, byOrder, nil, nil)
		older.wantEnding(source.EndApplied, newOrderEvent("1", "a", "one"))
		newer := newRelease(t, st, byEvent, former, nil)
		newer.wantEnding(source.EndDuplicate, newOrderEvent("1", "a", "one"))
		newer.wantEnding(source.EndApplied, newOrderEvent("2", "b", "two"))
		older.wantEnding(source.EndDuplicate, newOrderEvent("2", "b", "two"))
		newer.wantEnding(source.EndDuplicate, newOrderEvent("2", "b", "two"))
		newRelease(t, st, byOrder, nil, nil).wantEnding(source.EndDuplicate, newOrderEvent("2", "b", "two"))
		if n := effects(st, "effects"); n != "2" {
			t.Errorf("%s effects", n)
		}
	})
	t.Run("A7_a_coarser_former_identity_loses_nothing", func(t *testing.T) {
		st := memstore.New()
		newRelease(t, st, byOrder, nil, nil).wantEnding(source.EndApplied, newOrderEvent("1", "created", "created"))
		newer := newRelease(t, st, byEvent, former, nil)
		newer.wantEnding(source.EndConflict, newOrderEvent("1", "paid", "paid"))
		newer.wantEnding(source.EndDuplicate, newOrderEvent("1", "paid", "paid"))
		newer.wantEnding(source.EndDuplicate, newOrderEvent("1", "created", "created"))
		rows, err := st.Rows(t.Context(), store.RowFilter{Consumer: "billing"})
		if err != nil || len(rows) != 1 || rows[0].Key.ID != "paid" || rows[0].Reason != reasonname.FormerConflict || rows[0].Repeated != 1 {
			t.Fatalf("the rows are %+v, %v", rows, err)
		}
		if err := errors.Join(st.Requeue(t.Context(), store.Act{Verb: "retry", Who: "a test"}, rows[0].Seen())...); err != nil {
			t.Fatal(err)
		}
		if err := newRelease(t, st, byEvent, former, nil).consumer.Work(t.Context()); err != nil {
			t.Fatal(err)
		}
		newer.wantEnding(source.EndDuplicate, newOrderEvent("1", "paid", "paid"))
		for _, name := range []string{"created", "paid"} {
			if n := effects(st, name); n != "1" {
				t.Errorf("%s has %s effects", name, n)
			}
		}
	})
	t.Run("A7_old_and_new_ids_that_are_equal_are_not_taken_for_one", func(t *testing.T) {
		st := memstore.New()
		newRelease(t, st, byOrder, nil, nil).wantEnding(source.EndApplied, newOrderEvent("5", "1", "same"))
		newer := newRelease(t, st, byEvent, former, nil)
		newer.wantEnding(source.EndApplied, newOrderEvent("6", "5", "same"))
	})
	t.Run("A7_what_cannot_be_compared_is_a_conflict_or_as_the_policy_says", func(t *testing.T) {
		for trust, want := range map[bool]source.End{false: source.EndConflict, true: source.EndDuplicate} {
			st := memstore.New()
			newRelease(t, st, byOrder, nil, func(c *consumer.Config) { c.Fingerprint = identity.FingerprintNone() }).wantEnding(source.EndApplied, newOrderEvent("1", "a", "one"))
			newRelease(t, st, byEvent, &consumer.PreviousIdentity{Identity: byOrder, TrustUnfingerprinted: trust}, nil).wantEnding(want, newOrderEvent("1", "a", "one"))
		}
	})
	t.Run("A7_a_mark_in_a_transaction_of_a_callers_own_is_of_both_identities", func(t *testing.T) {
		for trust, unprinted := range map[bool]store.VerdictKind{false: store.Conflict, true: store.Seen} {
			st := memstore.New()
			older := newRelease(t, st, byOrder, nil, nil)
			older.wantEnding(source.EndApplied, newOrderEvent("1", "a", "one"))
			newRelease(t, st, byOrder, nil, func(c *consumer.Config) { c.Fingerprint = identity.FingerprintNone() }).wantEnding(source.EndApplied, newOrderEvent("3", "c", "three"))
			newer := newRelease(t, st, byEvent, &consumer.PreviousIdentity{Identity: byOrder, TrustUnfingerprinted: trust}, nil)
			b, _, err := st.Begin(t.Context(), store.TxOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				m    *semel.Message
				want store.VerdictKind
			}{{newOrderEvent("1", "a", "one"), store.Seen}, {newOrderEvent("2", "b", "two"), store.Fresh}, {newOrderEvent("3", "c", "three"), unprinted}} {
				if v, _ := newer.consumer.TryMark(t.Context(), b.Tx(store.All), c.m); v.Kind != c.want {
					t.Errorf("trust %t: %s is %v, want %v", trust, c.m.Body, v.Kind, c.want)
				}
			}
			if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
				t.Fatalf("the commit says %+v", r)
			}
			older.wantEnding(source.EndDuplicate, newOrderEvent("2", "b", "two"))
		}
	})
	t.Run("A7_a_message_without_the_former_identity_has_its_own", func(t *testing.T) {
		st := memstore.New()
		newRelease(t, st, byOrder, nil, nil).wantEnding(source.EndApplied, newOrderEvent("1", "a", "one"))
		newer := newRelease(t, st, byEvent, former, nil)
		m := &semel.Message{Headers: semel.Headers{{Name: "event", Value: []byte("b")}}, Body: []byte("two")}
		newer.wantEnding(source.EndApplied, m)
		newer.wantEnding(source.EndDuplicate, m)
	})
	t.Run("trap_T13_a_message_that_failed_is_not_its_own_former_duplicate", func(t *testing.T) {
		st := memstore.New()
		newer := newRelease(t, st, byEvent, former, func(c *consumer.Config) { c.Retry.InitialDelay = time.Millisecond })
		newer.fail = errors.New("away")
		newer.wantEnding(source.EndUnknown, newOrderEvent("1", "a", "one"))
		newer.fail = nil
		newer.wantEnding(source.EndApplied, newOrderEvent("1", "a", "one"))
	})
	t.Run("A7_a_batch_with_one_former_identity_twice_loses_nothing", func(t *testing.T) {
		st := memstore.New()
		newer := newRelease(t, st, byEvent, former, func(c *consumer.Config) { c.Workers = 1 })
		var ms []*semel.Message
		for i := range 40 {
			ms = append(ms, newOrderEvent(fmt.Sprint(i/2), fmt.Sprint(i), fmt.Sprint("body ", i/4*4+i%2)))
		}
		all, err := newer.consumer.ProcessAll(t.Context(), ms)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range all {
			want := source.EndApplied
			if i%2 == 1 {
				want = source.EndConflict
			}
			if d.Ending != want {
				t.Errorf("message %d ends as %v, want %v", i, d.Ending, want)
			}
		}
	})
}

func TestADerivationIsRecorded(t *testing.T) {
	former := &consumer.PreviousIdentity{Identity: byOrder}
	start := func(t *testing.T, st *memstore.Store, by identity.Identity, former *consumer.PreviousIdentity) error {
		return newRelease(t, st, by, former, nil).consumer.Check(t.Context())
	}
	t.Run("A7_another_derivation_is_refused_with_both_and_the_remedy", func(t *testing.T) {
		st := memstore.New()
		if err := start(t, st, byOrder, nil); err != nil {
			t.Fatal(err)
		}
		err := start(t, st, byEvent, nil)
		if !errors.Is(err, semel.ErrIdentityChanged) || !strings.Contains(err.Error(), "header:order") || !strings.Contains(err.Error(), "header:event") || !strings.Contains(err.Error(), "identity.previous") {
			t.Errorf("got %v", err)
		}
		if err := start(t, st, byOrder, nil); err != nil {
			t.Errorf("the refused start has changed something: %v", err)
		}
		if err := start(t, st, identity.By("header:ORDER"), nil); err != nil {
			t.Errorf("the case of a header's name: %v", err)
		}
	})
	t.Run("A7_every_way_to_start_asks", func(t *testing.T) {
		st := memstore.New()
		if err := start(t, st, byOrder, nil); err != nil {
			t.Fatal(err)
		}
		b, _, err := st.Begin(t.Context(), store.TxOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, begin := range map[string]func(*consumer.Consumer[*memstore.Tx]) error{
			"Work": func(c *consumer.Consumer[*memstore.Tx]) error { return c.Work(t.Context()) },
			"Process": func(c *consumer.Consumer[*memstore.Tx]) error {
				_, err := c.Process(t.Context(), newOrderEvent("1", "a", "x"))
				return err
			},
			"TryMark": func(c *consumer.Consumer[*memstore.Tx]) error {
				_, err := c.TryMark(t.Context(), b.Tx(store.All), newOrderEvent("1", "a", "x"))
				return err
			},
			"Accept": func(c *consumer.Consumer[*memstore.Tx]) error {
				_, err := c.Accept(t.Context(), b.Tx(store.All), newOrderEvent("1", "a", "x"))
				return err
			},
		} {
			if err := begin(newRelease(t, st, byEvent, nil, nil).consumer); !errors.Is(err, semel.ErrIdentityChanged) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("A7_the_former_one_goes_when_a_person_retires_it", func(t *testing.T) {
		st := memstore.New()
		for _, err := range []error{start(t, st, byOrder, nil), start(t, st, byEvent, former), start(t, st, byOrder, nil)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := start(t, st, byEvent, nil); !errors.Is(err, semel.ErrIdentityChanged) {
			t.Errorf("without the previous identity, which is still in use: %v", err)
		}
		if err := start(t, st, identity.By("header:third"), &consumer.PreviousIdentity{Identity: byEvent}); !errors.Is(err, semel.ErrIdentityChanged) {
			t.Errorf("a third beside two: %v", err)
		}
		if err := st.RetireDerivation(t.Context(), "billing", 0, true, store.Act{Verb: "retire", Who: "a test"}); err != nil {
			t.Fatal(err)
		}
		for _, f := range []*consumer.PreviousIdentity{nil, former} {
			if err := start(t, st, byEvent, f); err != nil {
				t.Errorf("former %v: %v", f, err)
			}
		}
		if err := start(t, st, byOrder, nil); !errors.Is(err, semel.ErrIdentityChanged) {
			t.Errorf("a retired one: %v", err)
		}
		if err := st.RetireDerivation(t.Context(), "billing", 0, false, store.Act{Verb: "retire", Who: "a test"}); err != nil {
			t.Fatal(err)
		}
		if err := start(t, st, byOrder, nil); !errors.Is(err, semel.ErrIdentityChanged) {
			t.Errorf("a retired identity without the current one: %v", err)
		}
		if err := start(t, st, byOrder, &consumer.PreviousIdentity{Identity: byEvent}); err != nil {
			t.Errorf("back to the first identity: %v", err)
		}
	})
	t.Run("A7_what_was_retired_is_refused_until_that_is_taken_back", func(t *testing.T) {
		st := memstore.New()
		retire := store.Act{Verb: "retire", Who: "a test"}
		for _, err := range []error{start(t, st, byOrder, nil), st.RetireDerivation(t.Context(), "billing", 0, true, retire)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := start(t, st, byOrder, nil); !errors.Is(err, semel.ErrIdentityChanged) || !strings.Contains(err.Error(), "--undo") {
			t.Errorf("without a previous identity: %v", err)
		}
		if err := start(t, st, byEvent, nil); err != nil {
			t.Fatal(err)
		}
		if err := start(t, st, byOrder, &consumer.PreviousIdentity{Identity: byEvent}); !errors.Is(err, semel.ErrIdentityChanged) {
			t.Errorf("with the current identity as the previous one: %v", err)
		}
	})
	t.Run("A7_the_last_but_one_does_not_start_beside_the_successor_of_another", func(t *testing.T) {
		st := memstore.New()
		third, act := identity.By("header:third"), store.Act{Verb: "retire", Who: "a test"}
		for _, err := range []error{
			start(t, st, byOrder, nil), start(t, st, byEvent, former),
			st.RetireDerivation(t.Context(), "billing", 0, true, act),
			start(t, st, third, &consumer.PreviousIdentity{Identity: byEvent}),
			start(t, st, byEvent, nil), // this release comes after the first one
			st.RetireDerivation(t.Context(), "billing", 0, false, act),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := start(t, st, byOrder, &consumer.PreviousIdentity{Identity: byEvent}); !errors.Is(err, semel.ErrIdentityChanged) || !strings.Contains(err.Error(), "header:third") {
			t.Errorf("the third marks under no identity of the first: %v", err)
		}
	})
	t.Run("A7_a_former_identity_that_never_was_is_refused", func(t *testing.T) {
		st := memstore.New()
		if err := start(t, st, byOrder, nil); err != nil {
			t.Fatal(err)
		}
		if err := start(t, st, byOrder, &consumer.PreviousIdentity{Identity: byEvent}); !errors.Is(err, semel.ErrIdentityChanged) || !strings.Contains(err.Error(), "never recorded") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("A7_streams_do_not_begin_anew_under_another_identity", func(t *testing.T) {
		st := memstore.New()
		versioned := func(by identity.Identity) error {
			return newRelease(t, st, by, nil, func(c *consumer.Config) {
				c.Version = &consumer.VersionPolicy{By: identity.Stream("header:order").At("header:n")}
			}).consumer.Check(t.Context())
		}
		if err := versioned(byOrder); err != nil {
			t.Fatal(err)
		}
		if err := st.RetireDerivation(t.Context(), "billing", 0, true, store.Act{Verb: "retire", Who: "a test"}); err != nil {
			t.Fatal(err)
		}
		if err := versioned(byEvent); !errors.Is(err, semel.ErrIdentityChanged) || !strings.Contains(err.Error(), "begin anew") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("A7_an_identity_that_tells_nothing_is_not_recorded", func(t *testing.T) {
		st := memstore.New()
		own := identity.Func(func(m *semel.Message) (string, string, error) { return "", string(m.Body), nil })
		for _, by := range []identity.Identity{own, byOrder, own} {
			if err := start(t, st, by, nil); err != nil {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestAFormerIdentityIsRefusedWithTheReason(t *testing.T) {
	for says, change := range map[string]func(*consumer.Config){
		"is what Identity is now": func(c *consumer.Config) { c.Identity = byOrder },
		"other coordinates": func(c *consumer.Config) {
			c.PreviousIdentity = &consumer.PreviousIdentity{Identity: identity.By("offset")}
		},
		"PreviousIdentity.Identity: is missing": func(c *consumer.Config) { c.PreviousIdentity = &consumer.PreviousIdentity{} },
		"writes no markers":                     func(c *consumer.Config) { c.Strategy, c.NaturalReason = consumer.StrategyNatural, "a test" },
		"all but one would be lost":             func(c *consumer.Config) { c.Fingerprint = identity.FingerprintNone() },
		"and Version are both set": func(c *consumer.Config) {
			c.Version = &consumer.VersionPolicy{By: identity.Stream("key").At("header:n")}
		},
		"describe their derivation": func(c *consumer.Config) {
			c.Identity = identity.Func(func(m *semel.Message) (string, string, error) { return "", "a", nil })
		},
		"Exclusive: is set and Owner is em": func(c *consumer.Config) { c.Exclusive = true },
	} {
		config := consumer.Config{Name: "billing", Identity: byEvent, PreviousIdentity: &consumer.PreviousIdentity{Identity: byOrder}}
		change(&config)
		_, err := consumer.New(memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { return nil }, config)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error that says %q", err, says)
		}
	}
}
