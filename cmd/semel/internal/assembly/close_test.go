package assembly

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// The type mute is a database whose server never responds.
type mute struct {
	database
	answer chan struct{}
}

func (m mute) place() string { return "database shop at db:5432" }

func (m mute) Close() error {
	<-m.answer
	return nil
}

func TestAStoreThatDoesNotCloseBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mute{answer: make(chan struct{})}
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
