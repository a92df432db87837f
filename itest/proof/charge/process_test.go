//go:build unix

package charge

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
	"github.com/semel-go/semel/itest/worlds/provider"
)

func TestMain(m *testing.M) { processes.OwnProgram(m, Command, Live) }

func TestAProviderThatIsKilledAndFrozenKnowsWhatItAnswered(t *testing.T) {
	address, err := proof.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(Quick(), proof.InTest(t), &Ledger{At: map[string]int{}})
	r.address = address
	o := r.providerOrder()
	o.Fates = provider.Fates{}
	m := r.add(order{Role: theProvider, Provider: o, Traps: []trap{{faults.AfterMark, true}}}, "provider")
	defer r.close()
	if err := r.start(m); err != nil {
		t.Fatal(err)
	}
	client := provider.Client{URL: "http://" + address, HTTP: &http.Client{Timeout: 5 * time.Second}}
	charge := func() (receipt provider.Receipt) {
		err := proof.Until(t.Context(), 10*time.Millisecond, func() (bool, error) { // the provider is ready when it answers
			var err error
			receipt, err = client.Charge(t.Context(), "k", provider.Payment{Reference: "order-1", Cents: 100})
			return err == nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return receipt
	}
	first := charge()
	if err := r.restartProvider(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := charge()
	r.Lease = -time.Second // a freeze without a duration: the process continues at once
	if err := syscall.Kill(m.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := r.Until(t.Context(), func() (bool, error) { return r.ledger.Resumed == 1, nil }); err != nil {
		t.Fatal(err)
	}
	if third := charge(); first != second || first != third || first.Charge != 1 || r.ledger.Restarts != 1 || len(r.ledger.At) != 1 {
		t.Errorf("%+v, %+v after a kill, %+v after a freeze, %+v", first, second, third, r.ledger)
	}
	if err := m.End(); err != nil {
		t.Error(err)
	}
}
