package assembly

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// unresponsiveDB is a database whose server never responds.
type unresponsiveDB struct {
	database
	answer chan struct{}
}

func (m unresponsiveDB) describe() string { return "database shop at db:5432" }

func (m unresponsiveDB) Close() error {
	<-m.answer
	return nil
}

func TestAStoreThatDoesNotCloseBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := unresponsiveDB{answer: make(chan struct{})}
		a := &Assembly{Stores: []*Store{{database: m, policy: &policy.Store{Name: "shop"}}}}
		began := time.Now()
		err := a.Close()
		if took := time.Since(began); took != closeWithin {
			t.Errorf("Close took %v", took)
		}
		if err == nil || !strings.Contains(err.Error(), "store shop: database shop at db:5432: a connection did not close within 5s") {
			t.Errorf("the error is %v", err)
		}
		close(m.answer)
	})
}
