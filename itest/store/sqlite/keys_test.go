package sqlite

import (
	"testing"

	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/storetest"
)

func TestSQLiteKeepsLeasedKeys(t *testing.T) {
	storetest.Keys(t, storetest.KeyHarness{Open: func(t testing.TB) storetest.KeyInstance {
		return storetest.KeyInstance{Store: instance(t, pragmas+foreignKeys).Store.(keystore.Store), Pass: storetest.RealTime}
	}})
}
