package sqlhandler

import (
	"context"
	"database/sql"
	"sync"
)

// statementCache has the prepared statements of the latest transaction, which the messages of a batch
// share. SQLite has one writing transaction at a time, and preparing is half of the cost of a small
// statement. database/sql closes prepared statements at the end of the transaction. If two transactions
// alternate, the statements are prepared again.
type statementCache struct {
	// mu guards tx and statements. mu is not held while a statement is prepared.
	mu sync.Mutex
	tx *sql.Tx
	// statements has the prepared statements by index. Only the goroutine that uses tx changes the items.
	statements []*sql.Stmt
}

// statementsFor returns the prepared statements of tx. An item is nil if the statement is not prepared yet.
func (p *statementCache) statementsFor(tx *sql.Tx, n int) []*sql.Stmt {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tx != tx {
		// While p refers to tx, no new transaction can have the same address.
		p.tx, p.statements = tx, make([]*sql.Stmt, n)
	}
	return p.statements
}

// exec runs statement i in tx.
func (h *Handler) exec(ctx context.Context, tx *sql.Tx, i int, args []any) (sql.Result, error) {
	if !h.cachesPrepared {
		return tx.ExecContext(ctx, h.statements[i].text, args...)
	}
	ready := h.preparedStatements.statementsFor(tx, len(h.statements))
	if ready[i] == nil {
		stmt, err := tx.PrepareContext(ctx, h.statements[i].text)
		if err != nil {
			return nil, err
		}
		ready[i] = stmt
	}
	return ready[i].ExecContext(ctx, args...)
}
