package demo

import (
	"context"
	"database/sql"
	"encoding/json"
)

// payment is the content of a message. Each producer numbers its own payments, so producer and id together
// are the identity.
type payment struct {
	Producer string `json:"producer"`
	ID       string `json:"id"`
	Account  string `json:"account"`
	Amount   int64  `json:"amount"`
}

// book inserts an entry and changes the balance of the account. All three consumers call book, but each
// consumer opens the transaction in a different way.
func book(ctx context.Context, tx *sql.Tx, body []byte) error {
	var p payment
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `insert into entries (producer, id, account, amount) values (?, ?, ?, ?)`,
		p.Producer, p.ID, p.Account, p.Amount)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `insert into accounts (id, balance) values (?1, ?2)
		on conflict (id) do update set balance = balance + ?2`, p.Account, p.Amount)
	return err
}
