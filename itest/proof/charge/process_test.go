//go:build unix

package charge

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
	"github.com/semel-go/semel/itest/worlds/provider"
)

func TestMain(m *testing.M) { processes.OwnProgram(m, Command, Live) }

func TestAProviderThatIsKilledAndFrozenKnowsWhatItAnswered(t *testing.T) {
	address := must.Get(proof.FreeAddress())(t)
	r := newRun(Quick(), proof.InTest(t), &Ledger{At: map[string]int{}})
	r.address = address
	o := r.providerOrder()
	o.Fates = provider.Fates{}
	m := r.add(order{Role: theProvider, Provider: o, Traps: []trap{{faults.AfterMark, true}}}, "provider")
	defer r.close()
	r.start(m)
	client := provider.Client{URL: "http://" + address, HTTP: &http.Client{Timeout: 5 * time.Second}}
	charge := func() (receipt provider.Receipt) {
		proof.Until(t.Context(), 10*time.Millisecond, func() bool { // wait until the provider answers
			var err error
			receipt, err = client.Charge(t.Context(), "k", provider.Payment{Reference: "order-1", Cents: 100})
			return err == nil
		})
		return receipt
	}
	first := charge()
	r.restartProvider(t.Context())
	second := charge()
	r.Lease = -time.Second // a freeze without a duration: the process continues at once
	must.OK(t, syscall.Kill(m.PID, syscall.SIGSTOP))
	r.Until(t.Context(), func() bool { return r.ledger.Resumed == 1 })
	if third := charge(); first != second || first != third || first.Charge != 1 || r.ledger.Restarts != 1 || len(r.ledger.At) != 1 {
		t.Errorf("%+v, %+v after a kill, %+v after a freeze, %+v", first, second, third, r.ledger)
	}
	if err := m.End(); err != nil {
		t.Error(err)
	}
}
