// Package memstore keeps markers, rows and effects in memory: the reference
// store, for tests and for learning.
//
// A batch is a transaction: what it marks and what its handlers write becomes
// visible to others at its commit, all of it, or never. Effects live in the
// store's own small table of strings to bytes, which handlers reach through
// *Tx. A mark of an identity that another open batch has marked waits until
// that batch is over. A batch that read a key which another batch has changed
// since does not commit; it ends as contended and runs again.
//
// Nothing survives the process, so nothing is promised across a restart: a
// consumer on this store processes again what its broker delivers again.
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
