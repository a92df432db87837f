package messages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// history is a policy in which messages have versions. The policy's store is not opened: the tests use a
// store in memory.
const history = `version: 1
stores: {shop: {sqlite: {path: shop.db}}}
sources: {orders: {file: {path: orders.jsonl, format: json}}}
consumers:
  history:
    from: orders
    store: shop
    identity: {id: ["body:/order", "body:/version"], source: "body:/from?"}
    version: {stream: "body:/order", number: "body:/version"}
    handler: {sql: {params: {v: "body:/version"}, statements: [insert into history values (:v)]}}
`

// process lets the policy's consumer process the given lines with a store in memory, and returns
// the applied versions.
func process(t *testing.T, store *memstore.Store, lines ...string) string {
	t.Helper()
	p, faults := policy.Parse("semel.yaml", []byte(history), os.LookupEnv)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	config := p.Consumers[0].Config()
	config.Logger = slog.New(slog.DiscardHandler)
	config.Source = file.Stdin(strings.NewReader(strings.Join(lines, "\n")+"\n"), file.Options{Format: file.JSON})
	var applied strings.Builder
	var mutex sync.Mutex // guards applied
	c, err := consumer.New(store, func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
		mutex.Lock()
		defer mutex.Unlock()
		applied.Write(m.Body)
		return nil
	}, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return applied.String()
}

// line returns, in JSON, the message about one version of an example order.
func line(order, version string) string {
	return `{"order":` + order + `,"version":` + version + `}`
}

func box(store *memstore.Store) []operate.Box {
	return []operate.Box{{Store: "shop", Inbox: store, Requeuer: store, Streams: store}}
}

// runWithCLI calls the function work with a CLI whose output is a terminal of 80 columns, and returns the output.
func runWithCLI(work func(c *command.CLI) error) (stdout, stderr string, err error) {
	var out, log bytes.Buffer
	c := &command.CLI{Streams: command.Streams{Out: terminal.Text(&out), Err: terminal.Text(&log), OutTerminal: true, Width: command.UsualWidth}}
	err = work(c)
	return out.String(), log.String(), err
}

func wantText(t *testing.T, text string, want ...string) {
	t.Helper()
	spaces := regexp.MustCompile(` +`)
	for _, w := range want {
		if !strings.Contains(spaces.ReplaceAllString(text, " "), w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
	for l := range strings.Lines(text) {
		if len([]rune(l)) > command.UsualWidth+1 && !strings.HasPrefix(l, "{") {
			t.Errorf("%d columns: %s", len([]rune(l)), l)
		}
	}
}

func skipWork(ctx context.Context, store *memstore.Store, o operate.Skip) func(*command.CLI) error {
	return func(c *command.CLI) error {
		_, err := skip(ctx, c, box(store), o, true)
		return err
	}
}

func TestGapsOfAStoreInMemory(t *testing.T) {
	t.Run("B9_K6_ls_lists_the_streams_in_which_messages_wait", func(t *testing.T) {
		store, long := memstore.New(), strings.Repeat("very long ", 30)
		process(t, store, line(`"a"`, "1"), line(`"a"`, "4"), line(`"a"`, "5"), line(`"`+long+`"`, "2"), line(`"b"`, "1"))
		list := func(c *command.CLI) error {
			return listGaps(t.Context(), c, box(store), operate.StreamFilter{}, &command.Listing{})
		}
		out, log, err := runWithCLI(list)
		if wantText(t, out, "CONSUMER", "BLOCKED FROM", "history a 1 4 2 0s", "very long"); err != nil || log != "2 streams\n" || strings.Contains(out, "SOURCE") || strings.Contains(out, " b ") {
			t.Errorf("%v, %q:\n%s", err, log, out)
		}
		out, _, _ = runWithCLI(func(c *command.CLI) error { c.JSON = true; return list(c) })
		var document struct {
			Streams []struct {
				Stream               string
				Last                 int64 `json:"last_version"`
				First                int64 `json:"first_blocked"`
				Blocked              int64
				Oldest               time.Time `json:"oldest_received_at"`
				Store, Consumer, Src string
			}
			Count int
		}
		if err := json.Unmarshal([]byte(out), &document); err != nil || document.Count != 2 || document.Streams[0].First != 4 || document.Streams[0].Blocked != 2 ||
			document.Streams[0].Oldest.IsZero() || document.Streams[1].Last != 0 {
			t.Errorf("%v, %+v", err, document)
		}
		out, log, _ = runWithCLI(func(c *command.CLI) error {
			return listGaps(t.Context(), c, box(store), operate.StreamFilter{}, &command.Listing{Limit: 1})
		})
		if strings.Count(out, "\n") != 2 || log != "1 of 2 streams; --limit 0 shows all\n" {
			t.Errorf("%q\n%s", log, out)
		}
	})
	t.Run("B9_K6_show_names_what_is_missing_and_the_rows_that_wait", func(t *testing.T) {
		store := memstore.New()
		process(t, store, line(`"a"`, "1"), line(`"a"`, "5"), line(`"a"`, "4"), line(`"b"`, "3"))
		out, log, err := runWithCLI(func(c *command.CLI) error {
			return showGap(t.Context(), c, box(store), operate.StreamFilter{Stream: "a"}, &command.Listing{})
		})
		if wantText(t, out, "last version 1\n", "missing 2 to 3\n", "wait for it 2 rows, the first from version 4, since 20", "blocked gap"); err != nil || !strings.HasPrefix(log, "show the first of them: semel messages show ") {
			t.Errorf("%v, %q", err, log)
		}
		if strings.Index(out, "  4  ") > strings.Index(out, "  5  ") {
			t.Errorf("not by version:\n%s", out)
		}
		out, log, err = runWithCLI(func(c *command.CLI) error {
			return showGap(t.Context(), c, box(store), operate.StreamFilter{Stream: "a"}, &command.Listing{Limit: 1})
		})
		if wantText(t, out, "missing 2 to 3\n", " 4 blocked"); err != nil || strings.Contains(out, "  5  ") || !strings.HasPrefix(log, "the first 1, by version; --limit 0 shows all\n") {
			t.Errorf("%v, %q\n%s", err, log, out)
		}
		_, _, err = runWithCLI(func(c *command.CLI) error {
			return showGap(t.Context(), c, box(store), operate.StreamFilter{Stream: "c"}, &command.Listing{})
		})
		if err == nil || !strings.Contains(err.Error(), `no stream "c" is known`) {
			t.Error(err)
		}
	})
}

func TestAPersonSkipsWhatNeverComes(t *testing.T) {
	act := operate.Skip{Filter: operate.StreamFilter{Stream: "a"}, Who: "ann", Why: "never sent"}
	t.Run("B9_K6_to_the_version_before_the_first_that_waits", func(t *testing.T) {
		st := memstore.New()
		process(t, st, line(`"a"`, "1"), line(`"a"`, "4"), line(`"a"`, "5"))
		dry := act
		dry.DryRun = true
		out, log, err := runWithCLI(skipWork(t.Context(), st, dry))
		if wantText(t, out, "history a: 1 to 3: would be done\n"); err != nil || !strings.Contains(log, "would be due") {
			t.Errorf("%v, %q", err, log)
		}
		out, log, err = runWithCLI(skipWork(t.Context(), st, act))
		if wantText(t, out, "history a: 1 to 3: done\n"); err != nil || !strings.Contains(log, "are due now;\na running consumer will process them") {
			t.Errorf("%v, %q", err, log)
		}
		if got := process(t, st); got != line(`"a"`, "4")+line(`"a"`, "5") {
			t.Errorf("%q took effect", got)
		}
		acts, err := st.Acts(t.Context(), 0, 0)
		if err != nil || len(acts) != 1 || acts[0].Who != "ann" || acts[0].Why != "consumer history, stream a, version 1 to 3: never sent" || acts[0].Verb != "skip" {
			t.Errorf("%v, %+v", err, acts)
		}
		out, _, err = runWithCLI(skipWork(t.Context(), st, act))
		if wantText(t, out, "refused: nothing waits in it; it is at version 5"); command.Report(&bytes.Buffer{}, err) != command.ExitFailed {
			t.Error(err)
		}
	})
	t.Run("B9_K6_to_a_version_that_is_named_forward_only", func(t *testing.T) {
		st := memstore.New()
		process(t, st, line(`"a"`, "1"), line(`"a"`, "2"), line(`"a"`, "5"), line(`"a"`, "7"))
		to := act
		to.To = 2
		out, _, err := runWithCLI(skipWork(t.Context(), st, to))
		if wantText(t, out, "refused: it is at version 2 already"); err == nil {
			t.Error("no error")
		}
		to.To = 6
		_, log, err := runWithCLI(skipWork(t.Context(), st, to))
		if err != nil || !strings.Contains(log, "a: skipped, too, and without an effect: row 1") {
			t.Errorf("%v, %q", err, log)
		}
		if got := process(t, st); got != line(`"a"`, "7") {
			t.Errorf("%q took effect", got)
		}
	})
	t.Run("B9_K6_no_version_that_is_dead_lettered_either", func(t *testing.T) {
		st := memstore.New()
		process(t, st, line(`"a"`, "1"), line(`"a"`, "3"))
		scope, err := st.Scope(t.Context(), "history", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		mark := store.Mark{Scope: scope, ID: []byte("dead"), As: store.DeadLettered, Version: versions.Position{Stream: []byte("a"), Number: 2, Start: 1}}
		b, _, err := st.Begin(t.Context(), store.TxOptions{}, []store.Mark{mark})
		if err != nil {
			t.Fatal(err)
		}
		b.Commit(t.Context(), store.Ending{Rows: []store.Row{{State: store.StateDeadLettered, Reason: semel.ReasonExhausted, Message: &semel.Message{}}}})
		out, _, err := runWithCLI(skipWork(t.Context(), st, act))
		if err == nil || !strings.Contains(out, "refused: version 2 is not missing: row 2 has it, which is dead") {
			t.Errorf("%v, %s", err, out)
		}
	})
	t.Run("B9_K6_no_version_that_is_there_unless_it_is_named", func(t *testing.T) {
		st := memstore.New()
		process(t, st, line(`"a"`, "1"), line(`"a"`, "4"), line(`"a"`, "7"))
		if _, _, err := runWithCLI(skipWork(t.Context(), st, act)); err != nil {
			t.Fatal(err)
		}
		out, _, err := runWithCLI(skipWork(t.Context(), st, act)) // no consumer has processed version 4 yet
		if err == nil || !strings.Contains(out, "refused: version 4 is not missing: row 1 has it, which is waiting") {
			t.Errorf("%v, %s", err, out)
		}
		out, _, _ = runWithCLI(func(c *command.CLI) error {
			return showGap(t.Context(), c, box(st), operate.StreamFilter{Stream: "a"}, &command.Listing{})
		})
		wantText(t, out, "missing 5 to 6\n")
		if got := process(t, st); got != line(`"a"`, "4") {
			t.Errorf("%q took effect", got)
		}
	})
	t.Run("B9_K6_what_has_moved_meanwhile_is_refused", func(t *testing.T) {
		st := memstore.New()
		process(t, st, line(`"a"`, "1"), line(`"a"`, "4"))
		seen, err := st.Streams(t.Context(), admin.StreamFilter{})
		if err != nil {
			t.Fatal(err)
		}
		process(t, st, line(`"a"`, "2"))
		for d := range box(st)[0].Skip(t.Context(), act, seen) {
			if d.Result != operate.Refused || d.Error != "its version has changed meanwhile; run semel gaps ls and try again" {
				t.Errorf("%+v", d)
			}
		}
	})
	t.Run("K6_all_that_match_and_no_others", func(t *testing.T) {
		st := memstore.New()
		process(t, st, line(`"a"`, "2"), line(`"b"`, "1"), line(`"c"`, "3"), `{"order":"d","version":2,"from":"x"}`)
		source := ""
		all := operate.Skip{Filter: operate.StreamFilter{Source: &source}, Who: "ann", Why: "cut"}
		out, _, err := runWithCLI(func(c *command.CLI) error { c.JSON = true; return skipWork(t.Context(), st, all)(c) })
		var document struct {
			Results []struct{ Stream, Result string }
			Failed  int
		}
		if wrong := json.Unmarshal([]byte(out), &document); err != nil || wrong != nil || len(document.Results) != 2 || document.Failed != 0 || document.Results[1].Stream != "c" {
			t.Errorf("%v, %v, %+v", err, wrong, document)
		}
		if got := process(t, st); !strings.Contains(got, line(`"a"`, "2")) || !strings.Contains(got, line(`"c"`, "3")) || strings.Contains(got, `"d"`) {
			t.Errorf("%q took effect", got)
		}
	})
}

func TestStreamsOfOneNameAreToldApart(t *testing.T) {
	t.Run("B9_a_name_that_two_sources_have_needs_its_source", func(t *testing.T) {
		store := memstore.New()
		process(t, store, `{"order":"a","version":2,"from":"x"}`, `{"order":"a","version":3,"from":"y"}`)
		o := operate.Skip{Filter: operate.StreamFilter{Stream: "a"}, Who: "ann", Why: "lost"}
		_, _, err := runWithCLI(skipWork(t.Context(), store, o))
		if command.Report(&bytes.Buffer{}, err) != command.ExitUsage || !strings.Contains(err.Error(), `2 streams have the name "a"`) || !strings.Contains(err.Error(), `--source "y"`) {
			t.Error(err)
		}
		source := "y"
		o.Filter.Source = &source
		if out, _, err := runWithCLI(skipWork(t.Context(), store, o)); err != nil || !strings.Contains(out, "a: 0 to 2: done") {
			t.Errorf("%v, %s", err, out)
		}
	})
}

func TestAStreamWhoseNameIsNoText(t *testing.T) {
	t.Run("B9_K6_is_shown_and_named_in_base64", func(t *testing.T) {
		name := "a\xff\x00"
		boxes := []operate.Box{{Store: "shop", Streams: singleStreamStore(name)}}
		out, _, err := runWithCLI(func(c *command.CLI) error {
			return listGaps(t.Context(), c, boxes, operate.StreamFilter{}, &command.Listing{})
		})
		if wantText(t, out, "base64:Yf8A 1 3 2 "); err != nil {
			t.Error(err)
		}
		one, err := oneStream(t.Context(), boxes, operate.StreamFilter{Stream: "base64:Yf8A"})
		if err != nil || one.stream.Name != name {
			t.Errorf("%v, %+v", err, one)
		}
	})
}

// singleStreamStore is a store with a single stream, which has this name.
type singleStreamStore string

func (name singleStreamStore) Streams(_ context.Context, f admin.StreamFilter) ([]admin.StoredStream, error) {
	if f.Stream != "" && f.Stream != string(name) {
		return nil, nil
	}
	return []admin.StoredStream{{Consumer: "history", Name: string(name), Last: 1, First: 3, Blocked: 2, Row: 1, Oldest: time.Unix(0, 0)}}, nil
}

func (singleStreamStore) SkipTo(context.Context, admin.StoredStream, int64, store.Act) error {
	return nil
}

func TestAStoreWithoutStreamsSaysSo(t *testing.T) {
	t.Run("K6_gaps_need_a_store_that_keeps_streams", func(t *testing.T) {
		boxes := []operate.Box{{Store: "shop", Inbox: memstore.New()}}
		_, _, err := runWithCLI(func(c *command.CLI) error {
			return listGaps(t.Context(), c, boxes, operate.StreamFilter{}, &command.Listing{})
		})
		if command.Report(&bytes.Buffer{}, err) != command.ExitFailed || !errors.Is(err, semel.ErrUnsupported) || !strings.HasPrefix(err.Error(), "store shop keeps no streams") {
			t.Error(err)
		}
	})
}

func TestAConflictOfVersionsIsShownAsOne(t *testing.T) {
	t.Run("B4_K6_though_its_identity_is_its_own", func(t *testing.T) {
		for want, d := range map[string]operate.Detail{
			"conflict yes; another content came first with its version\n": {View: operate.View{Version: 2, Stream: "a", Reason: semel.ReasonConflict}},
			"conflict no\n": {View: operate.View{Version: 2, Stream: "a", Reason: semel.ReasonGap}},
		} {
			var out bytes.Buffer
			if err := writeDetail((&command.CLI{}), &out, d); err != nil {
				t.Fatal(err)
			}
			wantText(t, out.String(), want)
		}
	})
}

func TestTheInboxShowsStreamsAndVersions(t *testing.T) {
	t.Run("B9_K6_a_row_that_waits_for_an_earlier_version", func(t *testing.T) {
		st := memstore.New()
		process(t, st, line(`"a"`, "2"))
		rows, err := st.Rows(t.Context(), store.RowFilter{States: command.WaitingStates()})
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		detail, err := box(st)[0].Show(t.Context(), rows[0].Number, false)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := writeDetail((&command.CLI{}), &out, detail); err != nil {
			t.Fatal(err)
		}
		wantText(t, out.String(), "state blocked\n", "stream a\n", "version 2\n", "waits until 20")
		out.Reset()
		if err := output.Table(&out, []operate.View{detail.View}, columnsOf([]operate.View{detail.View}, false, false), command.UsualWidth); err != nil {
			t.Fatal(err)
		}
		wantText(t, out.String(), "STREAM", "VERSION")
		for r, err := range box(st)[0].Carry(t.Context(), operate.Order{Verb: admin.Retry, Filter: store.RowFilter{Numbers: []int64{1}}, Who: "ann", Why: "now"}) {
			if err != nil || r.Result != operate.Refused || !strings.Contains(r.Error, `it is blocked by an earlier version of stream "a"`) || !strings.Contains(r.Error, "semel gaps") {
				t.Errorf("%+v, %v", r, err)
			}
		}
	})
}
