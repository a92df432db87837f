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

// Store is what is asked of a store.
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

// Search looks for an identity in one store.
type Search struct {
	Store Store
	Box   operate.Box
	// Where are the flags that have a command meet the store.
	Where []string
	// Sources are further ones under which a leased key is looked for.
	Sources []string
	// Payload asks for headers and bodies.
	Payload bool
	// Sends reports whether a consumer carries out intents.
	Sends func(consumer string) bool
}

const (
	// mostShown is how many rows of an identity are shown with all that is known of them.
	mostShown = 20
	// causedWithin is how long what a message caused is looked for.
	causedWithin = 5 * time.Second
)

// Find returns what the store knows of the id as one that a consumer has met, a Facts for
// each source. The name is that under which the consumer's records stand. unread is what the
// role may not read, so that the identity may be there all the same.
func (s Search) Find(ctx context.Context, consumer, id string) (_ []*Facts, unread []string, _ error) {
	all, barred, err := s.look(ctx, consumer, id)
	if err == nil {
		all, err = s.keys(ctx, consumer, id, all)
		err = note(&barred.all, "whether a leased key of it is there", err)
	}
	if err != nil || len(all) == 0 {
		return nil, barred.all, s.failed(consumer, err)
	}
	now, err := s.Store.Clock(ctx)
	if err != nil {
		return nil, nil, s.failed(consumer, err)
	}
	for _, f := range all {
		f.Now, f.NoMarkers, f.NoRows, f.Unread = now, barred.markers, barred.rows, slices.Clone(barred.all)
		for _, q := range s.questions() {
			if err := note(&f.Unread, q.what, q.add(ctx, f)); err != nil {
				return nil, nil, s.failed(consumer, err)
			}
		}
	}
	return all, barred.all, nil
}

// unreadable is what the role may not read of an identity: its markers, its rows, and all with why.
type unreadable struct {
	markers, rows bool
	all           []string
}

// question adds to what is known; what says what is missing where the role may not read it.
type question struct {
	what string
	add  func(context.Context, *Facts) error
}

func (s Search) questions() []question {
	return []question{
		{"what was done to its rows", s.details},
		{"what it waits for", s.order},
		{"which generation its consumer is of", s.generation},
		{"whether its consumer is paused", s.control},
		{"when its consumer told last that it works", s.progress},
		{"what it caused", s.caused},
		{"whether a replay has it in its range", s.replays},
		{"whether it was erased", s.erasures},
	}
}

func (s Search) failed(consumer string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store %s: consumer %s: %w", s.Box.Store, consumer, err)
}

// looks is how often marker and row are read where they do not agree: a commit between the two
// statements looks like that.
const looks = 4

// look reads markers and rows.
func (s Search) look(ctx context.Context, consumer, id string) ([]*Facts, unreadable, error) {
	for tries := 1; ; tries++ {
		var barred unreadable
		markers, err := s.Store.Known(ctx, consumer, id)
		barred.markers = err != nil
		if err := note(&barred.all, "whether it has a marker", err); err != nil {
			return nil, barred, err
		}
		rows, err := s.Store.RowsOf(ctx, consumer, id, false)
		barred.rows = err != nil
		if err := note(&barred.all, "whether it has a row", err); err != nil {
			return nil, barred, err
		}
		all := s.sort(consumer, id, markers, rows)
		if tries == looks || !slices.ContainsFunc(all, (*Facts).disagree) {
			return all, barred, nil
		}
	}
}

// sort puts what belongs to one source together.
func (s Search) sort(consumer, id string, markers []sqlstore.Known, rows []store.StoredRow) (all []*Facts) {
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
			f.Row = &rows[i] // of an older derivation another may stand before it
		}
	}
	slices.SortStableFunc(all, func(a, b *Facts) int { return cmp.Compare(a.Key.Source, b.Key.Source) })
	return all
}

// keys finds leased keys of the id: of the empty source, of those that are known of it, and of
// further ones. A key is found by all of its parts alone.
func (s Search) keys(ctx context.Context, consumer, id string, all []*Facts) ([]*Facts, error) {
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

// facts are those of an identity, of which nothing is known yet.
func (s Search) facts(key semel.Key) *Facts {
	return &Facts{Store: s.Box.Store, Key: key, Where: s.Where, Sends: s.Sends != nil && s.Sends(key.Consumer)}
}

// Rows are all that stand under the identity, that of the first content first.
func (f *Facts) Rows() []store.StoredRow {
	var all []store.StoredRow
	if f.Row != nil {
		all = append(all, *f.Row)
	}
	return append(all, f.Conflicts...)
}

// details shows the rows. Where the role may not read all that there is of one, the row itself
// is shown.
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

// order finds what a row waits for: an earlier version, or an earlier row of its line.
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

// generation, control and progress find what is known of who would work on the message.
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
	if err == nil && len(kept) == 1 && kept[0].Keep > 0 { // who keeps all for ever does not tell
		f.Progress = kept[0].Progress
	}
	return err
}

// caused finds what the message caused. Where that takes long it is left out, and said.
func (s Search) caused(ctx context.Context, f *Facts) error {
	within, cancel := context.WithTimeout(ctx, causedWithin)
	defer cancel()
	rows, err := s.Store.Caused(within, f.Key, 0)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		f.UnknownCaused = fmt.Sprintf("it was not found within %v, as without the index of what was caused all rows are read", causedWithin)
		return nil
	}
	f.Caused, f.MoreCaused = rows, len(rows) == 1000
	return err
}

// replays finds those of the consumer that have, or had, the place of a row in their range.
func (s Search) replays(ctx context.Context, f *Facts) error {
	public, _ := admin.GenerationOf(f.Key.Consumer)
	all, err := s.Store.ReplaysOf(ctx, public, 100)
	if err != nil {
		return err
	}
	for _, r := range all {
		if slices.ContainsFunc(f.Rows(), func(row store.StoredRow) bool { return covers(&r, &row) }) {
			f.Replays = append(f.Replays, r)
		}
	}
	return nil
}

// covers reports whether a row's place lies in the range of a replay.
func covers(r *admin.Replay, row *store.StoredRow) bool {
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

// erasures finds who erased an identity that has no row: such an act says only a hash of it.
func (s Search) erasures(ctx context.Context, f *Facts) (err error) {
	if f.Row == nil && len(f.Markers) > 0 {
		f.Erasures, err = s.Store.Erased(ctx, f.Key)
	}
	return err
}
