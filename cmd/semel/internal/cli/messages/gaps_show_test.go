package messages

import (
	"context"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func TestAStreamIsNamedAsItIsPrinted(t *testing.T) {
	t.Run("B9_K6_with_escapes_where_it_holds_what_a_terminal_would_obey", func(t *testing.T) {
		for _, name := range []string{"a\x1b[2J", "two\nlines", `C:\new "one"`, "\u202eabc", " blank "} {
			boxes := []operate.Box{{Store: "shop", Streams: singleStreamStore(name)}}
			for _, typed := range []string{name, legible.Printable(name)} {
				if one, err := oneStream(t.Context(), boxes, operate.StreamFilter{Stream: typed}); err != nil || one.stream.Name != name {
					t.Errorf("%q typed as %s is %+v, %v", name, typed, one.stream, err)
				}
			}
		}
		for _, typed := range []string{`a\`, `a\q`, "base64:a?"} {
			if _, err := oneStream(t.Context(), []operate.Box{{Store: "shop", Streams: singleStreamStore("a")}}, operate.StreamFilter{Stream: typed}); err == nil {
				t.Errorf("%s names a stream", typed)
			}
		}
	})
}

func TestAStreamWithManyRowsIsReadAsFarAsItIsShown(t *testing.T) {
	t.Run("B9_K6_it_is_asked_for_no_more", func(t *testing.T) {
		store, asked := memstore.New(), &filterRecorder{}
		process(t, store, line(`"a"`, "4"), line(`"a"`, "3"), line(`"b"`, "2"))
		asked.Store = store
		boxes := []operate.Box{{Store: "shop", Inbox: asked, Streams: store}}
		detail, err := boxes[0].Stream(t.Context(), admin.StoredStream{Consumer: "history", Name: "a", First: 3, Blocked: 2}, 1)
		if err != nil || len(detail.Rows) != 1 || detail.Rows[0].Version != 3 || !detail.More || len(detail.Missing) != 1 || detail.Missing[0] != (operate.Span{From: 1, To: 2}) {
			t.Errorf("%v, %+v", err, detail)
		}
		for _, f := range asked.filters {
			if f.Stream == nil || f.Stream.Name != "a" || f.Limit > 2 && f.Stream.To != 2 {
				t.Errorf("asked for %+v of %+v", f, f.Stream)
			}
		}
	})
}

// filterRecorder records the filters of all calls of Rows.
type filterRecorder struct {
	*memstore.Store
	filters []store.RowFilter
}

func (a *filterRecorder) Rows(ctx context.Context, f store.RowFilter) ([]store.StoredRow, error) {
	a.filters = append(a.filters, f)
	return a.Store.Rows(ctx, f)
}
