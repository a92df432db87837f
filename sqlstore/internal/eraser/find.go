package eraser

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/inbox"
)

// nextRows returns the next rows that match the filter, without a comparison of headers.
func (e *eraseCall) nextRows(ctx context.Context) (all []match, err error) {
	f := &e.o.Filter
	c := &inbox.Conditions{Dialect: e.store.Dialect, Args: []any{e.o.After.Number, e.o.Most}}
	addConditions(c, f, "i.id", func(id string) []any {
		stored, _ := sqlform.ID([]byte(id))
		return []any{stored, sqlform.AsideKey(stored)}
	})
	if len(f.States) > 0 {
		c.In("i.state", inbox.States(f.States))
	}
	if f.Reason != "" {
		c.And("i.reason = ?", sqlform.Plain(string(f.Reason)))
	}
	if f.Type != "" {
		c.And("i.type = ?", sqlform.Plain(f.Type))
	}
	if !f.From.IsZero() {
		c.And("i.received_at >= "+c.Dialect.Moment, f.From.UnixMilli())
	}
	if !f.Before.IsZero() {
		c.And("i.received_at < "+c.Dialect.Moment, f.Before.UnixMilli())
	}
	return database.List(ctx, e.tx, c.Of(e.store.SQL.ErasableRows), func(rows *sql.Rows) (match, error) {
		var consumer, source, id, long []byte
		one := match{at: time.UnixMilli(0)}
		one.key.Part = admin.ErasureRows
		err := rows.Scan(&one.key.Number, &consumer, &source, &id, &long)
		one.id, one.hasPlainID = identityOf(consumer, source, id, long)
		return one, err
	}, c.Args...)
}

// nextResults returns the next results that match the filter, without a comparison of times.
func (e *eraseCall) nextResults(ctx context.Context) (all []match, err error) {
	after := e.o.After
	c := &inbox.Conditions{Dialect: e.store.Dialect, Args: []any{after.Number, database.NotNil(after.ID), e.o.Most}}
	addConditions(c, &e.o.Filter, "r.id", func(id string) []any {
		stored, _ := sqlform.ID([]byte(id))
		return []any{stored}
	})
	return database.List(ctx, e.tx, c.Of(e.store.SQL.ErasableResults), func(rows *sql.Rows) (match, error) {
		var consumer, source, long []byte
		var at sql.NullInt64
		var one match
		one.key.Part = admin.ErasureResults
		err := rows.Scan(&one.key.Number, &one.key.ID, &consumer, &source, &long, &at)
		one.id, one.hasPlainID = identityOf(consumer, source, one.key.ID, long)
		if at.Valid {
			one.at = time.UnixMilli(at.Int64)
		}
		return one, err
	}, c.Args...)
}

// nextKeys returns the next leased keys that match the filter, without a comparison of times.
func (e *eraseCall) nextKeys(ctx context.Context) (all []match, err error) {
	c := &inbox.Conditions{Dialect: e.store.Dialect, Args: []any{database.NotNil(e.o.After.ID), e.o.Most}}
	addConditions(c, &e.o.Filter, "s.id", func(id string) []any { return []any{[]byte(id)} })
	return database.List(ctx, e.tx, c.Of(e.store.SQL.ErasableKeys), func(rows *sql.Rows) (match, error) {
		var consumer, source, id []byte
		var first int64
		one := match{hasPlainID: true}
		one.key.Part = admin.ErasureKeys
		err := rows.Scan(&one.key.ID, &consumer, &source, &id, &first)
		one.id.Key.Consumer, one.id.Key.Source, one.id.Key.ID = string(consumer), string(source), string(id)
		one.at = time.UnixMilli(first)
		return one, err
	}, c.Args...)
}

// addConditions adds the filter's conditions on identities. The function forms returns the formats in which the store
// may contain an id.
func addConditions(c *inbox.Conditions, f *admin.ErasureFilter, column string, forms func(id string) []any) {
	if len(f.Consumers) > 0 {
		c.In("s.consumer", inbox.Blobs(f.Consumers))
	}
	if len(f.Sources) > 0 {
		c.In("s.source", inbox.Blobs(f.Sources))
	}
	var ids []any
	for _, id := range f.IDs {
		ids = append(ids, forms(id)...)
	}
	if len(ids) > 0 {
		c.In(column, ids)
	}
}
