package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Store has the methods of a store that Search needs.
type Store interface {
	admin.Controls
	admin.Generations
	store.Reaper
	admin.Replays
	Known(ctx context.Context, consumer, id string) ([]sqlstore.Known, error)
	RowsOf(ctx context.Context, consumer, id string, bodies bool) ([]store.StoredRow, error)
	Caused(ctx context.Context, by semel.Key, after int64) ([]store.StoredRow, error)
	Erased(ctx context.Context, key semel.Key) ([]store.Act, error)
	LeasedKey(ctx context.Context, key semel.Key) (sqlstore.KnownKey, bool, error)
	Clock(ctx context.Context) (time.Time, error)
}

// Search finds the records of an identity in one store.
type Search struct {
	Store Store
	Box   operate.Box
	// Bare means that the user named the store without a policy.
	Bare bool
	// Sources are further sources for the search of leased keys.
	Sources []string
	// Payload includes headers and bodies.
	Payload bool
	// Sends reports whether a consumer sends intents; may be nil.
	Sends func(consumer string) bool
}

const (
	// mostShown is the maximum number of rows of an identity that are shown with details.
	mostShown = 20
	// causedWithin is the maximum time of the search for intents that a message caused.
	causedWithin = 5 * time.Second
)

// Find returns the records of a consumer's id, one Facts per source. The parameter consumer is the stored
// name, which can contain a generation. The result unread lists what the database role cannot read. If unread
// is not empty, the identity may exist although Find returns no Facts.
func (s Search) Find(ctx context.Context, consumer, id string) (_ []*Facts, unread []string, _ error) {
	all, barred, err := s.readRecords(ctx, consumer, id)
	if err == nil {
		all, err = s.findLeasedKeys(ctx, consumer, id, all)
		err = noteMissingRight(&barred.all, "whether it has a leased key", err)
	}
	if err != nil || len(all) == 0 {
		return nil, barred.all, s.failure(consumer, err)
	}
	now, err := s.Store.Clock(ctx)
	if err != nil {
		return nil, nil, s.failure(consumer, err)
	}
	for _, f := range all {
		f.Now, f.NoMarkers, f.NoRows, f.Unread = now, barred.markers, barred.rows, slices.Clone(barred.all)
		for _, q := range s.questions() {
			if err := noteMissingRight(&f.Unread, q.what, q.add(ctx, f)); err != nil {
				return nil, nil, s.failure(consumer, err)
			}
		}
	}
	return all, barred.all, nil
}

// unreadable describes what the database role cannot read. The field markers means that the role cannot read
// markers, and the field rows that the role cannot read rows. The field all lists every unreadable record
// with the missing privilege.
type unreadable struct {
	markers, rows bool
	all           []string
}

// question is a step that adds records to the facts. If the database role cannot read the records, the text
// in the field what is added to the list of unreadable records.
type question struct {
	what string
	add  func(context.Context, *Facts) error
}

func (s Search) questions() []question {
	return []question{
		{"the changes of its rows", s.details},
		{"what it waits for", s.order},
		{"the generation of its consumer", s.generation},
		{"whether its consumer is paused", s.control},
		{"the last progress of its consumer", s.progress},
		{"the intents that it caused", s.readCaused},
		{"whether a replay includes it", s.replays},
		{"whether it was erased", s.erasures},
	}
}

func (s Search) failure(consumer string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store %s: consumer %s: %w", s.Box.Store, consumer, err)
}

// maxReads is the maximum number of times that marker and row are read. If marker and row disagree,
// the cause can be a commit between the two statements.
const maxReads = 4

// readRecords reads the markers and rows of an id.
func (s Search) readRecords(ctx context.Context, consumer, id string) ([]*Facts, unreadable, error) {
	for tries := 1; ; tries++ {
		var barred unreadable
		markers, err := s.Store.Known(ctx, consumer, id)
		barred.markers = err != nil
		if err := noteMissingRight(&barred.all, "whether it has a marker", err); err != nil {
			return nil, barred, err
		}
		rows, err := s.Store.RowsOf(ctx, consumer, id, false)
		barred.rows = err != nil
		if err := noteMissingRight(&barred.all, "whether it has a row", err); err != nil {
			return nil, barred, err
		}
		all := s.groupBySource(consumer, id, markers, rows)
		if tries == maxReads || !slices.ContainsFunc(all, (*Facts).disagree) {
			return all, barred, nil
		}
	}
}

// groupBySource creates one value of type Facts for each source of the markers and rows.
func (s Search) groupBySource(consumer, id string, markers []sqlstore.Known, rows []store.StoredRow) (all []*Facts) {
	of := map[string]*Facts{}
	facts := func(source string) *Facts {
		f := of[source]
		if f == nil {
			f = s.facts(semel.Key{Consumer: consumer, Source: source, ID: id})
			of[source] = f
			all = append(all, f)
		}
		return f
	}
	for _, m := range markers {
		f := facts(m.Key.Source)
		f.Markers = append(f.Markers, m)
	}
	for i := range rows {
		f := facts(rows[i].Key.Source)
		if rows[i].Conflict {
			f.Conflicts = append(f.Conflicts, rows[i])
		} else {
			f.Row = &rows[i] // rows of older selectors come first, so the row of the newest selectors stays
		}
	}
	slices.SortStableFunc(all, func(a, b *Facts) int { return cmp.Compare(a.Key.Source, b.Key.Source) })
	return all
}

// findLeasedKeys searches for leased keys of the id: without a source, with the sources that were found, and
// with s.Sources. A leased key can only be found by the complete identity.
func (s Search) findLeasedKeys(ctx context.Context, consumer, id string, all []*Facts) ([]*Facts, error) {
	sources := append([]string{""}, s.Sources...)
	for _, f := range all {
		sources = append(sources, f.Key.Source)
	}
	slices.Sort(sources)
	for _, source := range slices.Compact(sources) {
		key, found, err := s.Store.LeasedKey(ctx, semel.Key{Consumer: consumer, Source: source, ID: id})
		if err != nil {
			return all, err
		}
		if !found {
			continue
		}
		at := slices.IndexFunc(all, func(f *Facts) bool { return f.Key.Source == source })
		if at < 0 {
			all = append(all, s.facts(semel.Key{Consumer: consumer, Source: source, ID: id}))
			at = len(all) - 1
		}
		all[at].Leased = &key
	}
	return all, nil
}

// facts returns empty Facts for an identity.
func (s Search) facts(key semel.Key) *Facts {
	return &Facts{Store: s.Box.Store, Key: key, Bare: s.Bare, Sends: s.Sends != nil && s.Sends(key.Consumer)}
}

// Rows returns all rows of the identity. The first row is the row with the first content.
func (f *Facts) Rows() []store.StoredRow {
	var all []store.StoredRow
	if f.Row != nil {
		all = append(all, *f.Row)
	}
	return append(all, f.Conflicts...)
}

// details reads the details of the rows. If the database role cannot read the details, only the rows
// themselves are shown.
func (s Search) details(ctx context.Context, f *Facts) (lacks error) {
	for _, r := range f.Rows() {
		if len(f.Details) == mostShown {
			break
		}
		d, err := s.Box.Show(ctx, r.Number, s.Payload)
		if LacksRight(err) {
			d, lacks = operate.NewDetail(s.Box.Store, r, nil, false), err
		} else if err != nil {
			return err
		}
		f.Details = append(f.Details, d)
	}
	return lacks
}

// order finds the version or the row that the message waits for.
func (s Search) order(ctx context.Context, f *Facts) error {
	r := f.owner()
	if r == nil {
		r = f.Row
	}
	at := -1
	if r != nil {
		at = slices.IndexFunc(f.Details, func(d operate.Detail) bool { return d.Number == r.Number })
	}
	if at < 0 {
		return nil
	}
	if behind := f.Details[at].Behind; behind > 0 {
		ahead, err := s.Box.Inbox.Rows(ctx, store.RowFilter{Numbers: []int64{behind}, Limit: 1})
		if err != nil {
			return err
		}
		if len(ahead) > 0 {
			f.Ahead = &ahead[0]
		}
	}
	if r.Version == 0 || s.Box.Streams == nil {
		return nil
	}
	streams, err := s.Box.Streams.Streams(ctx, admin.StreamFilter{Consumer: f.Key.Consumer, Stream: r.Stream})
	if err != nil {
		return err
	}
	for i := range streams {
		if streams[i].Source != r.Key.Source {
			continue
		}
		f.Stream = &streams[i]
		detail, err := s.Box.Stream(ctx, streams[i], 1)
		f.Missing = detail.Missing
		return err
	}
	return nil
}

// generation, control and progress read the records about the message's consumer.
func (s Search) generation(ctx context.Context, f *Facts) error {
	public, number := admin.GenerationOf(f.Key.Consumer)
	generations, err := s.Store.Generations(ctx, public)
	if err != nil {
		return err
	}
	for i := range generations {
		if generations[i].Number == number {
			f.Generation = &generations[i]
		}
	}
	return nil
}

func (s Search) control(ctx context.Context, f *Facts) (err error) {
	public, _ := admin.GenerationOf(f.Key.Consumer)
	f.Control, err = s.Store.Control(ctx, public)
	return err
}

func (s Search) progress(ctx context.Context, f *Facts) error {
	kept, err := s.Store.Retentions(ctx, f.Key.Consumer)
	if err == nil && len(kept) == 1 && kept[0].Keep > 0 { // only consumers that remove markers record progress
		f.Progress = kept[0].Progress
	}
	return err
}

// readCaused reads the intents that the message caused. If the search takes longer than causedWithin,
// readCaused sets UnknownCaused and gives up.
func (s Search) readCaused(ctx context.Context, f *Facts) error {
	within, cancel := context.WithTimeout(ctx, causedWithin)
	defer cancel()
	rows, err := s.Store.Caused(within, f.Key, 0)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		f.UnknownCaused = fmt.Sprintf("the search took longer than %v; without the index of caused intents it reads all rows", causedWithin)
		return nil
	}
	f.Caused, f.MoreCaused = rows, len(rows) == 1000
	return err
}

// replays reads the consumer's replays whose range contains a row of the message.
func (s Search) replays(ctx context.Context, f *Facts) error {
	public, _ := admin.GenerationOf(f.Key.Consumer)
	all, err := s.Store.ReplaysOf(ctx, public, 100)
	if err != nil {
		return err
	}
	for _, r := range all {
		if slices.ContainsFunc(f.Rows(), func(row store.StoredRow) bool { return rangeContains(&r, &row) }) {
			f.Replays = append(f.Replays, r)
		}
	}
	return nil
}

func rangeContains(r *admin.Replay, row *store.StoredRow) bool {
	m := row.Message
	if m == nil || m.Origin.Offset < 0 {
		return false
	}
	lane := m.Topic
	if m.Origin.Partition >= 0 {
		lane = fmt.Sprintf("%s/%d", m.Topic, m.Origin.Partition)
	}
	return slices.ContainsFunc(r.Progress.Lanes, func(l admin.ReplayLane) bool {
		return l.Lane == lane && l.From <= m.Origin.Offset && m.Origin.Offset < l.To
	})
}

// erasures reads the recorded erasures of an identity without a row. An erasure contains only a hash of the
// identity.
func (s Search) erasures(ctx context.Context, f *Facts) (err error) {
	if f.Row == nil && len(f.Markers) > 0 {
		f.Erasures, err = s.Store.Erased(ctx, f.Key)
	}
	return err
}
