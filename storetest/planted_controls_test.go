package storetest_test

import (
	"context"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// pauseLifts lifts the limit with each pause.
type pauseLifts struct{ *memstore.Store }

func (s pauseLifts) Pause(ctx context.Context, consumer string, paused bool, a store.Act) error {
	if err := s.Store.Pause(ctx, consumer, paused, a); err != nil {
		return err
	}
	return s.Limit(ctx, consumer, 0, a)
}

// oneControl has one control for all consumers.
type oneControl struct{ *memstore.Store }

func (s oneControl) Control(ctx context.Context, _ string) (admin.Control, error) {
	return s.Store.Control(ctx, "all")
}

func (s oneControl) Pause(ctx context.Context, _ string, paused bool, a store.Act) error {
	return s.Store.Pause(ctx, "all", paused, a)
}

func (s oneControl) Limit(ctx context.Context, _ string, perSecond int, a store.Act) error {
	return s.Store.Limit(ctx, "all", perSecond, a)
}

// onlyScopes tells none but the consumer of the first scope.
type onlyScopes struct{ *memstore.Store }

func (s onlyScopes) Consumers(context.Context) ([]string, error) { return []string{"billing"}, nil }

// unrecorded keeps what is ordered beside the store, where nobody records it.
type unrecorded struct{ *memstore.Store }

func (s unrecorded) Acts(ctx context.Context, number int64, limit int) ([]store.Act, error) {
	all, err := s.Store.Acts(ctx, number, limit)
	var rows []store.Act
	for _, a := range all {
		if a.Row != 0 {
			rows = append(rows, a)
		}
	}
	return rows, err
}

// anyLimit takes every limit for one.
type anyLimit struct{ *memstore.Store }

func (s anyLimit) Limit(ctx context.Context, consumer string, perSecond int, a store.Act) error {
	return s.Store.Limit(ctx, consumer, max(perSecond, -perSecond), a)
}
