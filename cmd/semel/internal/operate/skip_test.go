package operate

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

type streams = admin.Streams

// moveRecorder records the names of moved streams.
type moveRecorder struct {
	streams
	moved []string
}

func (s *moveRecorder) SkipTo(_ context.Context, of admin.StoredStream, to int64, _ store.Act) error {
	s.moved = append(s.moved, fmt.Sprintf("%s/%s to %d", of.Source, of.Name, to))
	return nil
}

func TestASkipNamesTheSkippedRows(t *testing.T) {
	row := func(number int64, source string, version int64) store.StoredRow {
		return store.StoredRow{Number: number, Key: semel.Key{Consumer: "billing", Source: source}, State: store.StateParked, Stream: "a", Version: version}
	}
	f := &fakeInbox{rows: []store.StoredRow{row(1, "shop", 2), row(2, "mall", 3), row(3, "shop", 4), row(4, "shop", 5), row(5, "mall", 6)}}
	stream := func(source string) admin.StoredStream {
		return admin.StoredStream{Consumer: "billing", Source: source, Name: "a", Last: 2, Blocked: 1, First: 9}
	}
	for name, c := range map[string]struct {
		all  []admin.StoredStream
		want map[string][]int64
	}{
		"G6_up_to_the_version_that_is_asked_for":          {[]admin.StoredStream{stream("shop")}, map[string][]int64{"shop": {3}}},
		"G6_of_two_sources_with_one_name_each_its_own":    {[]admin.StoredStream{stream("shop"), stream("mall")}, map[string][]int64{"shop": {3}, "mall": {2}}},
		"G6_none_of_a_source_that_has_no_rows_of_its_own": {[]admin.StoredStream{stream("fair"), stream("mall")}, map[string][]int64{"fair": nil, "mall": {2}}},
	} {
		t.Run(name, func(t *testing.T) {
			streams := &moveRecorder{}
			for s, err := range (Box{Store: "shop", Inbox: f, Streams: streams}).Skip(t.Context(), Skip{To: 4, Who: "ann", Why: "lost"}, c.all) {
				if err != nil || s.Result != Done || !slices.Equal(s.Passed, c.want[s.Source]) {
					t.Errorf("%s: result %s with passed rows %v, %v; want %v", s.Source, s.Result, s.Passed, err, c.want[s.Source])
				}
			}
			if len(streams.moved) != len(c.all) {
				t.Errorf("moved are %v", streams.moved)
			}
		})
	}
}
