// Package memstore keeps markers, rows and effects in memory. The package is the reference store, for
// tests and for learning.
//
// A batch is a transaction: its marks and what its handlers write become visible at its commit, all or nothing.
// Effects are values in a small table of the store, which handlers access through *Tx. If another open batch has
// marked the same identity, a mark waits until that batch has ended. A batch that read a key which another batch
// has changed since does not commit; it ends as contended and runs again.
//
// The data is lost when the process ends. A consumer with this store processes again whatever its broker delivers
// after a restart.
package memstore

import (
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

var (
	_ store.TxStore[*Tx]   = (*Store)(nil)
	_ store.CallerTx[*Tx]  = (*Store)(nil)
	_ store.Inbox          = (*Store)(nil)
	_ admin.Requeuer       = (*Store)(nil)
	_ store.Leases         = (*Store)(nil)
	_ admin.Resolver       = (*Store)(nil)
	_ source.PositionStore = (*Store)(nil)
	_ admin.Controls       = (*Store)(nil)
	_ laneoffset.Store     = (*Store)(nil)
)
