package cli

import (
	"encoding/base64"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/why"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// whyView is what is known of a message, as people and scripts see it.
type whyView struct {
	ID       string      `json:"id"`
	IDBase64 string      `json:"id_base64,omitempty"`
	Found    []foundView `json:"found"`
	Looked   []looked    `json:"looked"`
	NotAsked []notAsked  `json:"not_asked,omitempty"`
}

// foundView is what one consumer knows of it.
type foundView struct {
	Store    string `json:"store"`
	Consumer string `json:"consumer"`
	Source   string `json:"source"`
	// Stage is one word for what became of it; Applied says whether its effect is there.
	Stage   why.Stage   `json:"stage"`
	Applied why.Applied `json:"applied"`
	Says    string      `json:"says"`
	// Commands change it, or tell more.
	Commands   []string            `json:"commands"`
	Markers    []markerView        `json:"markers"`
	Leased     *leasedView         `json:"leased_key,omitempty"`
	Rows       []whyRow            `json:"rows"`
	MoreRows   int                 `json:"more_rows,omitempty"`
	Generation string              `json:"generation,omitempty"`
	Paused     *operate.OrderView  `json:"paused,omitempty"`
	Progress   *time.Time          `json:"consumer_told_last_at,omitempty"`
	Stream     *operate.StreamView `json:"stream,omitempty"`
	Missing    []operate.Span      `json:"missing_versions,omitempty"`
	CausedBy   *causeView          `json:"caused_by,omitempty"`
	Caused     []operate.View      `json:"caused,omitempty"`
	MoreCaused bool                `json:"more_caused,omitempty"`
	NoCaused   string              `json:"caused_unknown,omitempty"`
	Replays    []replayView        `json:"replays,omitempty"`
	Erasures   []operate.ActView   `json:"erasures,omitempty"`
	// Unread is what the role may not read of it, each with the right that is missing.
	Unread    []string `json:"not_read,omitempty"`
	noMarkers bool
}

// markerView is a marker.
type markerView struct {
	Outcome string    `json:"outcome"`
	At      time.Time `json:"at"`
	// Generation is that of how the identity is found; semel identity ls shows them.
	Generation  int64  `json:"generation"`
	Fingerprint string `json:"fingerprint,omitempty"`
	// Result says that what the handler made is kept.
	Result bool `json:"result"`
}

// leasedView is a leased key.
type leasedView struct {
	// Ended is how the last claim ended; empty: it has not.
	Ended       string    `json:"ended,omitempty"`
	First       time.Time `json:"first_claimed_at"`
	Until       time.Time `json:"leased_until"`
	Kept        time.Time `json:"kept_until"`
	Started     int       `json:"claims_started"`
	Finished    int       `json:"claims_finished"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	Result      bool      `json:"result"`
}

func newLeased(k *sqlstore.KnownKey) *leasedView {
	if k == nil {
		return nil
	}
	v := &leasedView{First: k.First.UTC(), Until: k.Until.UTC(), Kept: k.Kept.UTC(), Started: k.Started, Finished: k.Finished, Fingerprint: fingerprintOf(k.Fingerprint), Result: k.Result}
	if k.Ended != 0 {
		v.Ended = k.Ended.String()
	}
	return v
}

// whyRow is a row with the fingerprint of its content.
type whyRow struct {
	operate.Detail
	Fingerprint string `json:"fingerprint,omitempty"`
}

// causeView is what caused a message, as its headers say.
type causeView struct {
	ID string `json:"id"`
	// Consumer wrote it, where it is an intent.
	Consumer    string `json:"consumer,omitempty"`
	Correlation string `json:"correlation_id,omitempty"`
}

func newWhyView(asked *whyAsked, found []*why.Facts, all []looked) whyView {
	v := whyView{ID: asked.id, Found: []foundView{}, Looked: append([]looked{}, all...)}
	if !utf8.ValidString(asked.id) {
		v.ID, v.IDBase64 = "", base64.StdEncoding.EncodeToString([]byte(asked.id))
	}
	for _, f := range found {
		v.Found = append(v.Found, newFound(f))
	}
	return v
}

func newFound(f *why.Facts) foundView {
	a := why.Explain(f)
	v := foundView{Store: f.Store, Consumer: f.Key.Consumer, Source: f.Key.Source, Stage: a.Stage, Applied: a.Applied, Says: a.Says,
		Commands: []string{}, Markers: []markerView{}, Leased: newLeased(f.Leased), Rows: []whyRow{}, Missing: f.Missing, MoreCaused: f.MoreCaused, NoCaused: f.UnknownCaused, Unread: f.Unread, noMarkers: f.NoMarkers}
	for _, command := range a.Do {
		v.Commands = append(v.Commands, shell(command...))
	}
	for _, m := range f.Markers {
		v.Markers = append(v.Markers, markerView{m.Outcome.String(), m.At.UTC(), m.Generation, fingerprintOf(m.Fingerprint), m.Result})
	}
	all := map[int64]store.StoredRow{}
	for _, r := range f.Rows() {
		all[r.Number] = r
		v.CausedBy = causeOf(v.CausedBy, f, &r)
	}
	for _, d := range f.Details {
		if f.Sends {
			d.Recipient = d.KeyName()
		}
		v.Rows = append(v.Rows, whyRow{d, fingerprintOf(all[d.Number].Fingerprint)})
	}
	v.MoreRows = len(all) - len(v.Rows)
	v.addConsumer(f)
	for _, r := range f.Caused {
		v.Caused = append(v.Caused, operate.NewView(f.Store, r))
	}
	for i := range f.Replays {
		v.Replays = append(v.Replays, viewOfReplay(f.Store, &f.Replays[i]))
	}
	for _, e := range f.Erasures {
		v.Erasures = append(v.Erasures, operate.ActView{At: e.At, Verb: e.Verb, Who: e.Who, Why: e.Why, Result: e.Result})
	}
	return v
}

// addConsumer adds what is known of who would work on it.
func (v *foundView) addConsumer(f *why.Facts) {
	if g := f.Generation; g != nil {
		v.Generation = fmt.Sprintf("%d, %s", g.Number, g.State)
	}
	if c := f.Control; c.Paused {
		v.Paused = &operate.OrderView{By: c.Pause.By, Why: c.Pause.Why, At: c.Pause.At}
	}
	if !f.Progress.IsZero() {
		v.Progress = &f.Progress
	}
	if f.Stream != nil {
		stream := operate.NewStreamView(f.Store, *f.Stream)
		v.Stream = &stream
	}
}

// causeOf reads from the headers of a row what caused its message.
func causeOf(known *causeView, f *why.Facts, r *store.StoredRow) *causeView {
	if known != nil || r.Message == nil {
		return known
	}
	id, has := r.Message.Headers.Get(semel.HeaderCausation)
	if !has {
		return nil
	}
	v := &causeView{ID: string(id)}
	if correlation, has := r.Message.Headers.Get(semel.HeaderCorrelation); has {
		v.Correlation = string(correlation)
	}
	v.Consumer = f.Writer()
	return v
}

func fingerprintOf(p semel.Fingerprint) string {
	if p.Version == 0 {
		return ""
	}
	return fmt.Sprintf("%d:%x", p.Version, p.Sum)
}
