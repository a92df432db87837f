package sqlite

import (
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

func TestSQLiteKeepsLeasedKeys(t *testing.T) {
	storetest.Keys(t, storetest.KeyHarness{Open: func(t testing.TB) storetest.KeyInstance {
		return storetest.KeyInstance{Store: instance(t, pragmas+foreignKeys).Store.(store.KeyStore), Pass: storetest.RealTime}
	}})
}
