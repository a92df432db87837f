package storetest_test

import (
	"context"
	"slices"

	"github.com/semel-go/semel/memstore"
)

// sortsScopes numbers scopes that are asked for at once in the order of their sources, and not
// in the order in which it was asked.
type sortsScopes struct{ *memstore.Store }

func (s sortsScopes) Scopes(ctx context.Context, consumer string, sources []string, generation int64) (numbers []int64, err error) {
	for _, source := range slices.Sorted(slices.Values(sources)) {
		n, err := s.Scope(ctx, consumer, source, generation)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
