package bench

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
)

// handBegin begins a transaction and writes the markers, in one round trip. The result contains the messages that are
// new.
func handBegin(ctx context.Context, conn *pgx.Conn, batch []*semel.Message) (fresh []*semel.Message, err error) {
	wrote := make(map[string]bool, len(batch))
	var begin pgx.Batch
	begin.Queue("begin isolation level read committed")
	ids, sums := handMarks(batch)
	begin.Queue(handMark, ids, sums).Query(func(rows pgx.Rows) error {
		var id []byte
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error { wrote[string(id)] = true; return nil })
		return err
	})
	if err := conn.SendBatch(ctx, &begin).Close(); err != nil {
		return nil, err
	}
	for _, m := range batch {
		if id := string(handID(m)); wrote[id] {
			delete(wrote, id)
			fresh = append(fresh, m)
		}
	}
	return fresh, nil
}
