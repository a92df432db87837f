package sqlhandler

import (
	"context"
	"database/sql"
	"sync"
)

// prepared keeps the statements that were prepared in the transaction that was
// used last, so that the messages of a batch share them: on SQLite, where one
// transaction writes at a time, preparing is half of what a small statement
// costs. database/sql closes them with the transaction. Transactions that take
// turns only prepare again.
type prepared struct {
	// mu protects what follows and is not held while a statement is prepared.
	mu sync.Mutex
	tx *sql.Tx
	// statements by index; only the goroutine that uses tx touches the items.
	statements []*sql.Stmt
}

// of returns the statements of tx, of which some may be nil yet.
func (p *prepared) of(tx *sql.Tx, n int) []*sql.Stmt {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tx != tx {
		// Holding tx keeps another transaction from having its address.
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
