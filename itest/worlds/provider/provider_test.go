package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
)

// fixture is a provider with a clock that the test controls.
type fixture struct {
	Client
	*Provider
	t    *testing.T
	now  time.Time
	stop func()
}

func open(t *testing.T, o Order) *fixture {
	b := &fixture{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if o.Log == "" {
		o.Log = filepath.Join(t.TempDir(), "log")
	}
	o.Window = time.Hour
	b.Provider = must.Get(Open(o, func() time.Time { return b.now }))(t)
	server := httptest.NewServer(b.Provider)
	b.Client = Client{URL: server.URL, HTTP: server.Client()}
	b.stop = func() {
		server.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	return b
}

func (b *fixture) pay(key, reference string, cents int64) (charge, status int, err error) {
	receipt, err := b.Charge(b.t.Context(), key, Payment{Reference: reference, Card: "4242", Cents: cents})
	var refused *StatusError
	if errors.As(err, &refused) {
		return 0, refused.Status, err
	}
	return receipt.Charge, http.StatusOK, err
}

func (b *fixture) countCharges(reference string) int {
	i, err := b.Ask(b.t.Context(), reference)
	if err != nil {
		b.t.Error(err)
	}
	return i.Charges
}

func TestAKeyTakesMoneyOnceUntilItIsForgotten(t *testing.T) {
	b := open(t, Order{})
	defer b.stop()
	first, _, _ := b.pay("k", "order-1", 100)
	b.now = b.now.Add(time.Hour - time.Second)
	if again, _, err := b.pay("k", "order-1", 100); again != first || err != nil || b.countCharges("order-1") != 1 {
		t.Errorf("charge %d, then %d, %v", first, again, err)
	}
	if _, status, _ := b.pay("k", "order-1", 200); status != http.StatusUnprocessableEntity {
		t.Errorf("another body under the key: %d", status)
	}
	b.now = b.now.Add(time.Second)
	if third, _, err := b.pay("k", "order-1", 100); third == first || err != nil || b.countCharges("order-1") != 2 {
		t.Errorf("a forgotten key: charge %d, %v, %d in all", third, err, b.countCharges("order-1"))
	}
	if _, _, err := b.pay("", "order-2", 100); err != nil {
		t.Error(err)
	}
	if _, _, err := b.pay("", "order-2", 100); err != nil || b.countCharges("order-2") != 2 {
		t.Errorf("without a key each call takes money: %d, %v", b.countCharges("order-2"), err)
	}
	if _, status, _ := b.pay("k3", "", 100); status != http.StatusBadRequest {
		t.Errorf("without a reference: %d", status)
	}
}

func TestAKeyIsKnownByItselfForItsWindow(t *testing.T) {
	b := open(t, Order{})
	defer b.stop()
	ask := func() int {
		answer := must.Get(b.HTTP.Get(b.URL + "/charges?key=k"))(t)
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	before := ask()
	_, _, _ = b.pay("k", "order-1", 100)
	known := ask()
	b.now = b.now.Add(time.Hour)
	if after := ask(); before != http.StatusNotFound || known != http.StatusOK || after != http.StatusNotFound {
		t.Errorf("before %d, known %d, after the window %d", before, known, after)
	}
}

func TestASecondCallUnderAKeyThatIsUnderWayIsRefused(t *testing.T) {
	b := open(t, Order{})
	defer b.stop()
	c := call{key: "k", payment: Payment{Reference: "order-1", Cents: 100}}
	must.OK(t, b.begin(&c))
	i, err := b.Ask(t.Context(), "order-1")
	if _, status, _ := b.pay("k", "order-1", 100); status != http.StatusConflict || !i.UnderWay || err != nil {
		t.Errorf("%d, asked meanwhile: %+v, %v", status, i, err)
	}
	b.end(&c)
	if i, err := b.Ask(t.Context(), "order-1"); i.UnderWay || err != nil {
		t.Errorf("asked afterwards: %+v, %v", i, err)
	}
}

func TestWhatWasAnsweredIsKnownAfterAKill(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	b := open(t, Order{Log: log})
	first, _, _ := b.pay("k", "order-1", 100)
	torn, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = torn.WriteString(`{"kind":"charged","reference":"ord`)
	}
	must.OK(t, err)
	_ = torn.Close()
	anew := open(t, Order{Log: log})
	again, _, err := anew.pay("k", "order-1", 100)
	if again != first || err != nil || anew.countCharges("order-1") != 1 {
		t.Errorf("charge %d, after the kill %d, %v", first, again, err)
	}
	if _, status, _ := anew.pay("k", "order-1", 1); status != http.StatusUnprocessableEntity {
		t.Errorf("another body after the kill: %d", status)
	}
	anew.stop()
	charged := 0
	if err := Entries(log, func(e Entry) {
		if e.Kind == Charged {
			charged++
		}
	}); err != nil || charged != 1 {
		t.Errorf("%d charges in the log, %v", charged, err)
	}
}

func TestWhateverTheFateACallUnderTheSameKeyTakesMoneyOnce(t *testing.T) {
	b := open(t, Order{Fates: Fates{Seed: 1, PerMille: 900}, Hold: time.Minute})
	defer b.stop()
	met := map[Fate]bool{}
	for n := range 40 {
		reference := "order-" + strconv.Itoa(n)
		for try := 0; ; try++ {
			// a busy machine needs a longer timeout
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(20+try)*time.Millisecond)
			_, err := b.Charge(ctx, reference, Payment{Reference: reference, Cents: 100})
			cancel()
			if err == nil {
				break
			}
			if try == 300 {
				t.Fatalf("%s is never answered: %v", reference, err)
			}
		}
		if got := b.countCharges(reference); got != 1 {
			t.Errorf("%s: %d charges", reference, got)
		}
	}
	if err := Entries(b.order.Log, func(e Entry) { met[e.Fate] = true }); err != nil {
		t.Error(err)
	}
	for _, f := range common {
		if !met[f] {
			t.Errorf("no call was met by %q", f)
		}
	}
}

func TestAStubbornReferenceIsCutUntilSomebodyHasAsked(t *testing.T) {
	fates := Fates{Seed: 1, Stubborn: 1_000_000}
	b := open(t, Order{Fates: fates})
	defer b.stop()
	kinds := map[uint64]bool{}
	for n := range 20 {
		reference := "order-" + strconv.Itoa(n)
		kind, _ := fates.isStubborn(reference)
		kinds[kind] = true
		for range 3 {
			if _, _, err := b.pay(reference, reference, 100); err == nil {
				t.Errorf("%s of kind %d is answered", reference, kind)
			}
		}
		i, err := b.Ask(t.Context(), reference)
		if mute := kind&stubbornMute != 0; mute != (err != nil) || mute != fates.Mute(reference) {
			t.Errorf("%s of kind %d: asked, %v", reference, kind, err)
		} else if mute {
			b.now = b.now.Add(time.Hour)
		} else if taken := kind&stubbornCharged != 0; (i.Charges == 1) != taken {
			t.Errorf("%s of kind %d: %d charges", reference, kind, i.Charges)
		}
		if _, _, err := b.pay(reference, reference, 100); err != nil {
			t.Errorf("%s of kind %d, asked: %v", reference, kind, err)
		}
	}
	if len(kinds) != stubbornKinds {
		t.Errorf("kinds: %v", kinds)
	}
}
