// Package memstore keeps markers, rows and effects in memory. The package is the reference store, for tests
// and for learning.
//
// A batch is a transaction: its markers and the writes of its handlers become visible at its commit, all or
// nothing. Effects are values in a small table of the store, which handlers access through *Tx. If another
// open batch has written a marker for the same identity, a batch waits until the other batch has ended. A
// batch does not commit if another batch has changed a key that it has read; it ends as contended and runs
// again.
//
// The data is lost when the process ends. After a restart, a consumer with this store processes all messages
// again that its broker redelivers.
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
