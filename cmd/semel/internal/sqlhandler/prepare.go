package sqlhandler

import (
	"context"
	"database/sql"
	"sync"
)

// prepared keeps the statements prepared in the last transaction, so that the messages of a batch
// share them. On SQLite, with one writing transaction at a time, preparing is half of the cost of a
// small statement. database/sql closes them with the transaction. Alternating transactions only
// prepare again.
type prepared struct {
	// mu protects tx and the list, and is not held while a statement is prepared.
	mu sync.Mutex
	tx *sql.Tx
	// statements by index; only the goroutine that uses tx changes the items.
	statements []*sql.Stmt
}

// of returns the statements of tx; some may still be nil.
func (p *prepared) of(tx *sql.Tx, n int) []*sql.Stmt {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tx != tx {
		// A kept tx prevents another transaction from getting its address.
		p.tx, p.statements = tx, make([]*sql.Stmt, n)
	}
	return p.statements
}

// exec runs statement i in tx.
func (h *Handler) exec(ctx context.Context, tx *sql.Tx, i int, args []any) (sql.Result, error) {
	if !h.prepares {
		return tx.ExecContext(ctx, h.statements[i].text, args...)
	}
	ready := h.prepared.of(tx, len(h.statements))
	if ready[i] == nil {
		stmt, err := tx.PrepareContext(ctx, h.statements[i].text)
		if err != nil {
			return nil, err
		}
		ready[i] = stmt
	}
	return ready[i].ExecContext(ctx, args...)
}
