package delivery

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/selectors"
	"github.com/semel-go/semel/source"
)

// readBy reads deliveries with n goroutines, whatever the number of cores.
func readBy(n int, c *Rules, deliveries []source.Delivery) ([]*machine.Item, *Readers) {
	r := &Readers{}
	f := &fetched{rules: c, deliveries: deliveries, items: make([]*machine.Item, len(deliveries)), chunkSize: 2}
	r.read(f, n)
	return f.items, r
}

// withoutPointers returns an item without its pointers, which differ each time the message is read.
func withoutPointers(i *machine.Item) machine.Item {
	out, p := *i, i.Handle.(*Delivery)
	out.Handle = fmt.Sprint(p.Message.Identity, string(p.Message.Body), p.Handle)
	return out
}

// refusal returns the reason and the error if an item never runs, and nothing if the item may run.
func refusal(i *machine.Item) (semel.Reason, error) {
	if i.Refused == nil {
		return reasonname.None, nil
	}
	return i.Refused.Reason, i.Refused.Why
}

func deliveriesOf(bodies ...string) []source.Delivery {
	out := make([]source.Delivery, len(bodies))
	for i, body := range bodies {
		out[i] = source.Delivery{
			Message: &semel.Message{Body: []byte(body), Headers: semel.Headers{{Name: "id", Value: fmt.Append(nil, i)}}},
			Lane:    source.Lane{ID: "a", Epoch: 1}, Before: source.Unknown, Handle: i,
		}
	}
	return out
}

func someBody(r *rand.Rand) string {
	text := strings.Repeat("x", r.IntN(300))
	switch r.IntN(7) {
	case 6:
		return strings.Repeat(`{"order":7}`, 6<<10)
	case 0:
		return text
	case 1:
		return ""
	case 2:
		return fmt.Sprintf(`{"order":%d,"order":1}`, r.IntN(9))
	case 3:
		return fmt.Sprintf(`{"note":"%s"}`, text)
	case 4:
		return fmt.Sprintf(`{"order":{"id":"\u0041%s"},"amount":%d.50}`, text, r.IntN(9))
	}
	return fmt.Sprintf(`{"amount":[%d,"%s"],"order":{"id":%d}}`, r.IntN(9), text, r.IntN(1000))
}

func TestManyReadersReturnTheSameItemsAsOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	prints := []identity.Fingerprinter{identity.FingerprintBody(), identity.FingerprintNone(), identity.FingerprintOf("body:/amount", "body:/order?", "header:id")}
	identities := []identity.Identity{identity.By("body:/order/id"), identity.By("header:id", "body:/order/id"), identity.By("header:id"), nil}
	for range 60 {
		c := &Rules{Guard: guard.Guard{Consumer: "billing"}, Identity: identities[r.IntN(len(identities))], Fingerprint: prints[r.IntN(len(prints))], MaxBody: 64 << 10}
		bodies := make([]string, r.IntN(40))
		for i := range bodies {
			bodies[i] = someBody(r)
		}
		want, _ := readBy(1, c, deliveriesOf(bodies...))
		got, _ := readBy(2+r.IntN(4), c, deliveriesOf(bodies...))
		for i := range want {
			if got[i].Handle.(*Delivery).Handle != i {
				t.Fatalf("place %d of %d has another delivery", i, len(want))
			}
			if w, g := withoutPointers(want[i]), withoutPointers(got[i]); !reflect.DeepEqual(w, g) {
				t.Fatalf("%q: alone %+v, beside others %+v", bodies[i], w, g)
			}
		}
	}
}

func TestABodyIsParsedOnceADelivery(t *testing.T) {
	body := `{"order":{"id":"\u0041-1"},"amount":12.50}`
	for name, c := range map[string]struct {
		by     identity.Identity
		print  identity.Fingerprinter
		parses int
	}{
		"for_identity_and_fingerprint":           {identity.By("body:/order/id"), identity.FingerprintBody(), 1},
		"for_a_composite_and_selected_values":    {identity.By("body:/order/id", "body:/amount"), identity.FingerprintOf("body:/amount", "body:/order"), 1},
		"not_at_all_where_nobody_asks":           {identity.By("header:id"), identity.FingerprintNone(), 0},
		"nor_where_only_headers_are_fingerprint": {identity.By("header:id"), identity.FingerprintOf("header:id"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			items, r := readBy(1, &Rules{Guard: guard.Guard{Consumer: "billing"}, Identity: c.by, Fingerprint: c.print, MaxBody: 1 << 20}, deliveriesOf(body, body, body))
			for _, i := range items {
				if i.Refused != nil {
					t.Fatal(i.Refused.Why)
				}
			}
			// A text that the room drops at the end is not counted.
			if got := r.rooms[0].Parses(); got != 3*c.parses {
				t.Errorf("%d texts were parsed for 3 deliveries, want %d", got, 3*c.parses)
			}
		})
	}
}

// choosy is a store that changes the spelling of ids.
type choosy struct{}

func (choosy) fit(source, id string) (string, error) {
	switch id {
	case "panic":
		panic("no")
	case "refuse":
		return "", errors.New("refused")
	case "trap": // an error whose text cannot be read
		return "", (*trap)(nil)
	case "lose":
		return "", nil
	}
	return strings.ToLower(id), nil
}

// trap is an error whose methods panic.
type trap struct{ inner error }

func (t *trap) Error() string { return t.inner.Error() }
func (t *trap) Unwrap() error { return t.inner }

// parsing decodes deliveries as a source does whose messages are lines of JSON.
type parsing struct{}

func (parsing) Decode(room *reading.Room, m *semel.Message) (semel.Reason, string) {
	_, _ = room.Parse(m.Body)
	return reasonname.None, ""
}

func TestAStoreThatFitsIdentitiesHasEachBodyReadOnce(t *testing.T) {
	c := &Rules{Guard: guard.Guard{Consumer: "billing", Logger: slog.New(slog.DiscardHandler)}, Identity: identity.By("body:/id"), Fingerprint: identity.FingerprintBody(), MaxBody: 1 << 20, FitIdentity: choosy{}.fit}
	deliveries := deliveriesOf(`{"id":"ABC"}`, `{"id":"abc"}`, `{"id":"panic"}`, `{"id":"refuse"}`, `{"id":"lose"}`, `{"id":"trap"}`)
	for i := range deliveries {
		deliveries[i].Undecoded = parsing{}
	}
	items, r := readBy(1, c, deliveries)
	if got := r.rooms[0].Parses(); got != len(items) {
		t.Errorf("%d texts were parsed for %d deliveries", got, len(items))
	}
	for i, want := range []semel.Reason{"", "", semel.ReasonBadIdentity, semel.ReasonBadIdentity, semel.ReasonNoIdentity, semel.ReasonBadIdentity} {
		if reason, why := refusal(items[i]); reason != want {
			t.Errorf("%d is refused as %q (%v), want %q", i, reason, why, want)
		}
	}
	for _, c := range []*Rules{c, {}} {
		if n := testing.AllocsPerRun(100, func() { _, _, _ = c.fit("shop", "abc") }); n != 0 {
			t.Errorf("an id that is spelled as the store does has %v allocations", n)
		}
	}
	if items[0].Identity != "abc" || items[1].Identity != "abc" {
		t.Errorf("%q and %q", items[0].Identity, items[1].Identity)
	}
}

func TestTheSameMemoryIsReadAgainForAnotherDelivery(t *testing.T) {
	c := &Rules{Guard: guard.Guard{Consumer: "billing"}, Identity: identity.By("body:/id"), Fingerprint: identity.FingerprintBody(), MaxBody: 1 << 20}
	p, q, d := new(Delivery), new(Delivery), deliveriesOf(`{"id":"1"}`)[0]
	r := reader{room: new(reading.Room)}
	p.read(c, r, &d)
	copy(d.Message.Body, `{"id":2  }`) // the layout differs from the last one, so the remembered layout does not fit
	r.room.Begin()
	q.read(c, r, &d)
	if p.Item.Identity != "1" || q.Item.Identity != "2" || p.Item.Print == q.Item.Print {
		t.Errorf("%q and %q", p.Item.Identity, q.Item.Identity)
	}
}

// scribble is a user-defined Fingerprinter. Depending on the body, scribble reuses a buffer, panics, or ends
// its goroutine.
type scribble struct {
	running atomic.Int32
	atOnce  atomic.Bool
}

func (*scribble) Validate() error { return nil }

func (s *scribble) Fingerprint(m *semel.Message) (semel.Fingerprint, error) {
	if s.running.Add(1) > 1 {
		s.atOnce.Store(true)
	}
	defer s.running.Add(-1)
	runtime.Gosched()
	switch string(m.Body) {
	case "panic":
		panic("no")
	case "exit":
		runtime.Goexit()
	}
	return semel.Fingerprint{Version: 1, Sum: [16]byte{m.Body[0]}}, nil
}

func TestAUsersFunctionsInReadersBesideEachOther(t *testing.T) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	config := func(s *scribble) *Rules {
		return &Rules{Guard: guard.Guard{Consumer: "billing", Logger: quiet}, Identity: identity.By("header:id"), Fingerprint: s, MaxBody: 1 << 20}
	}
	bodies := slices.Repeat([]string{"a", "b", "c", "panic"}, 50)
	t.Run("one_that_panics_is_charged_to_its_message_alone", func(t *testing.T) {
		items, _ := readBy(4, config(&scribble{}), deliveriesOf(bodies...))
		for i, item := range items {
			if _, why := refusal(item); (item.Refused != nil) != (bodies[i] == "panic") {
				t.Errorf("message %d, %q: %v", i, bodies[i], why)
			}
		}
	})
	t.Run("they_are_not_called_for_two_messages_at_once", func(t *testing.T) {
		s := &scribble{}
		readBy(4, config(s), deliveriesOf(bodies...))
		if s.atOnce.Load() {
			t.Error("two at once, although a fingerprinter may keep a buffer")
		}
	})
	for _, n := range []int{1, 4} {
		t.Run(fmt.Sprintf("one_that_ends_its_goroutine_sets_its_message_aside_%d_readers", n), func(t *testing.T) {
			for range 20 {
				ends := deliveriesOf("a", "exit", "b", "c", "exit", "a", "panic", "b", "exit", "exit")
				items, r := readBy(n, config(&scribble{}), ends)
				for i, item := range items {
					body := string(ends[i].Message.Body)
					if reason, why := refusal(item); (item.Refused != nil) != (len(body) > 1) || body == "exit" && !strings.Contains(fmt.Sprint(why), "Goexit") {
						t.Fatalf("message %d, %q: %q, %v", i, body, reason, why)
					}
				}
				if len(r.alone) != 0 {
					t.Fatal("a lock is held by a goroutine that has ended")
				}
			}
		})
	}
	t.Run("what_an_identity_did_to_the_body_is_read", func(t *testing.T) {
		by := identity.Func(func(m *semel.Message) (string, string, error) {
			if _, err := selectors.Select(m, nil); err != nil {
				return "", "", err
			}
			copy(m.Body, `{"a":2}`)
			return "", "1", nil
		})
		c := &Rules{Guard: guard.Guard{Consumer: "billing"}, Identity: by, Fingerprint: identity.FingerprintBody(), MaxBody: 1 << 20}
		one, _ := readBy(1, c, deliveriesOf(`{"a":1}`))
		two, _ := readBy(1, c, deliveriesOf(`{"a":2}`))
		if one[0].Print != two[0].Print {
			t.Error("the fingerprint belongs to an earlier body")
		}
	})
}

func TestASmallFetchStartsNoGoroutine(t *testing.T) {
	r := &Readers{}
	c := &Rules{Guard: guard.Guard{Consumer: "billing"}, Identity: identity.By("header:id"), Fingerprint: identity.FingerprintBody(), MaxBody: 1 << 20}
	r.Items(c, deliveriesOf(slices.Repeat([]string{`{"a":1}`}, 100)...))
	if len(r.rooms) != 1 {
		t.Errorf("%d rooms for 700 bytes", len(r.rooms))
	}
	r.Items(c, deliveriesOf(slices.Repeat([]string{`"` + strings.Repeat("x", 64<<10) + `"`}, 9)...))
	if most := runtime.GOMAXPROCS(0); len(r.rooms) != min(9, most) {
		t.Errorf("%d rooms for 576 KiB on %d cores", len(r.rooms), most)
	}
	if items := r.Items(c, nil); items != nil {
		t.Error("items of nothing")
	}
}

// remembering is a user-defined type that is both identity and fingerprinter. For identity and fingerprint together,
// remembering parses a body only once.
type remembering struct{ last []byte }

func (*remembering) Validate() error { return nil }

func (r *remembering) Identify(m *semel.Message) (source, id string, err error) {
	r.last = m.Body
	runtime.Gosched()
	return "", string(m.Body), nil
}

func (r *remembering) Fingerprint(*semel.Message) (semel.Fingerprint, error) {
	f := semel.Fingerprint{Version: 1}
	copy(f.Sum[:], r.last)
	return f, nil
}

func TestNoMessageComesBetweenAnothersIdentityAndFingerprint(t *testing.T) {
	both := &remembering{}
	bodies := make([]string, 400)
	for i := range bodies {
		bodies[i] = fmt.Sprint("message ", i)
	}
	items, _ := readBy(4, &Rules{Guard: guard.Guard{Consumer: "billing"}, Identity: both, Fingerprint: both, MaxBody: 1 << 20}, deliveriesOf(bodies...))
	for i, item := range items {
		want := semel.Fingerprint{Version: 1}
		copy(want.Sum[:], bodies[i])
		if item.Print != want {
			t.Fatalf("message %d has the fingerprint of %q", i, item.Print.Sum)
		}
	}
}

func TestAProofThatAMessageCameWithIsNotTrusted(t *testing.T) {
	body := []byte(`{"a":1}`)
	room := new(reading.Room)
	if _, err := room.Body(body); err != nil {
		t.Fatal(err)
	}
	d := deliveriesOf("")
	d[0].Message.Body, d[0].Message.Strict = body, room.Proof(body)
	copy(body, `{"a":,}`)
	asked := false
	by := identity.Func(func(m *semel.Message) (source, id string, err error) {
		asked = true
		s, err := selectors.Parse("body:/a")
		if err == nil {
			_, err = s.Value(m)
		}
		return "", "1", err
	})
	items, _ := readBy(1, &Rules{Guard: guard.Guard{Consumer: "billing"}, Identity: by, Fingerprint: identity.FingerprintNone(), MaxBody: 1 << 20}, d)
	if reason, why := refusal(items[0]); !asked || reason != semel.ReasonMalformed {
		t.Errorf("asked %v, refused %q: %v", asked, reason, why)
	}
}
