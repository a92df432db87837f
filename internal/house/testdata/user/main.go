// Command user uses the libraries as a user's program does. The program uses those parts of Semel that need the most
// code.
package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

func main() {
	fmt.Println(run(context.Background()))
}

func run(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, "")
	if err != nil {
		return err
	}
	st, err := pgxstore.New(pool, pgxstore.Options{})
	if err != nil {
		return err
	}
	if _, err := st.Migrate(ctx); err != nil {
		return err
	}
	_, _, err = st.Begin(ctx, store.TxOptions{}, nil)
	return err
}
