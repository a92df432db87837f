package pgxstore

import (
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/storetest"
)

func TestPgxKeepsLeasedKeys(t *testing.T) {
	pool := openPool(t, services.Postgres(t))
	storetest.Keys(t, storetest.KeyHarness{Open: func(t testing.TB) storetest.KeyInstance {
		return storetest.KeyInstance{Store: newFixture(t, pool).Store, Pass: storetest.RealTime}
	}})
}
