package sqlhandler

import (
	"context"
	"database/sql"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// textTypes are the PostgreSQL types that store any text unchanged.
var textTypes = []uint32{pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID, pgtype.NameOID, pgtype.JSONOID, pgtype.JSONBOID}

// lookAtPlaces asks PostgreSQL for the column types of the parameters, so that the text "NaN" is rejected
// for a number but accepted for a name. If the type is unknown, the column counts as numeric. In other
// databases, all columns count as numeric. A parameter of another step also counts as numeric, because a
// wrong value must be rejected before the first step takes effect.
func (h *Handler) lookAtPlaces(ctx context.Context, db *sql.DB) {
	if !h.sendsText || !slices.Contains(h.types, "") {
		return
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return
	}
	defer conn.Close()
	plain, numbers := make([]bool, len(h.names)), make([]bool, len(h.names))
	err = conn.Raw(func(driver any) error {
		server, ok := driver.(interface{ Conn() *pgx.Conn })
		if !ok {
			return sql.ErrConnDone // with another driver, the types of the columns are unknown
		}
		for _, s := range h.statements {
			described, err := server.Conn().Prepare(ctx, "", s.text)
			if err != nil {
				return err
			}
			for at, value := range s.args {
				text := at < len(described.ParamOIDs) && slices.Contains(textTypes, described.ParamOIDs[at])
				plain[value], numbers[value] = text, numbers[value] || !text
			}
		}
		return nil
	})
	if err != nil {
		return
	}
	for i := range plain {
		plain[i] = plain[i] && !numbers[i]
	}
	h.textOnly = plain
}
