package explain

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/messages"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/cli/replays"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/cmd/semel/internal/why"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/semelheader"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// whyView shows what the stores know about a message.
type whyView struct {
	ID       string             `json:"id"`
	IDBase64 string             `json:"id_base64,omitempty"`
	Found    []foundView        `json:"found"`
	Looked   []searchedConsumer `json:"looked"`
	NotAsked []unreadableStore  `json:"not_asked,omitempty"`
}

// foundView shows what the store of one consumer knows about the message.
type foundView struct {
	Store    string `json:"store"`
	Consumer string `json:"consumer"`
	Source   string `json:"source"`
	// Stage is the state of the message as one word. Applied says whether the effect is committed.
	Stage   why.Stage   `json:"stage"`
	Applied why.Applied `json:"applied"`
	Says    string      `json:"says"`
	// Commands are semel commands that change the state of the message, or show more about the message.
	Commands   []string             `json:"commands"`
	Markers    []markerView         `json:"markers"`
	Leased     *leasedView          `json:"leased_key,omitempty"`
	Rows       []whyRow             `json:"rows"`
	MoreRows   int                  `json:"more_rows,omitempty"`
	Generation string               `json:"generation,omitempty"`
	Paused     *operate.OrderView   `json:"paused,omitempty"`
	Progress   *time.Time           `json:"consumer_told_last_at,omitempty"`
	Stream     *operate.StreamView  `json:"stream,omitempty"`
	Missing    []operate.Span       `json:"missing_versions,omitempty"`
	CausedBy   *causeView           `json:"caused_by,omitempty"`
	Caused     []operate.View       `json:"caused,omitempty"`
	MoreCaused bool                 `json:"more_caused,omitempty"`
	NoCaused   string               `json:"caused_unknown,omitempty"`
	Replays    []replays.ReplayView `json:"replays,omitempty"`
	Erasures   []operate.ChangeView `json:"erasures,omitempty"`
	// Unread lists the records that the database role cannot read, each with the missing privilege.
	Unread    []string `json:"not_read,omitempty"`
	noMarkers bool
}

type markerView struct {
	Outcome string    `json:"outcome"`
	At      time.Time `json:"at"`
	// Generation is the number of the selectors with which the identity was found. `semel consumers identity
	// ls lists the numbers.
	Generation  int64  `json:"generation"`
	Fingerprint string `json:"fingerprint,omitempty"`
	// Result reports that the store has a result of the handler.
	Result bool `json:"result"`
}

// leasedView shows a leased key.
type leasedView struct {
	// Ended is the outcome of the last claim; empty if the claim has not ended.
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

// whyRow shows a row and the fingerprint of its content.
type whyRow struct {
	operate.Detail
	Fingerprint string `json:"fingerprint,omitempty"`
}

// causeView shows the message that caused this message, according to the headers.
type causeView struct {
	ID string `json:"id"`
	// Consumer is the consumer that wrote the intent; empty if the message is not an intent.
	Consumer    string `json:"consumer,omitempty"`
	Correlation string `json:"correlation_id,omitempty"`
}

// newWhyView returns the view of what was found. The parameter suggest is CLI.SuggestIn.
func newWhyView(asked *whyAsked, found []*why.Facts, all []searchedConsumer, suggest func(store string, words ...string) string) whyView {
	v := whyView{ID: asked.id, Found: []foundView{}, Looked: append([]searchedConsumer{}, all...)}
	if !utf8.ValidString(asked.id) {
		v.ID, v.IDBase64 = "", base64.StdEncoding.EncodeToString([]byte(asked.id))
	}
	for _, f := range found {
		v.Found = append(v.Found, newFound(f, suggest))
	}
	return v
}

func newFound(f *why.Facts, suggest func(store string, words ...string) string) foundView {
	a := why.Explain(f)
	v := foundView{Store: f.Store, Consumer: f.Key.Consumer, Source: f.Key.Source, Stage: a.Stage, Applied: a.Applied, Says: a.Says,
		Commands: []string{}, Markers: []markerView{}, Leased: newLeased(f.Leased), Rows: []whyRow{}, Missing: f.Missing, MoreCaused: f.MoreCaused, NoCaused: f.UnknownCaused, Unread: f.Unread, noMarkers: f.NoMarkers}
	for _, words := range a.Do {
		v.Commands = append(v.Commands, suggest(f.Store, words...))
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
		v.Replays = append(v.Replays, replays.ViewOfReplay(f.Store, &f.Replays[i]))
	}
	for _, e := range f.Erasures {
		v.Erasures = append(v.Erasures, operate.ChangeView{At: e.At, Verb: e.Verb, Who: e.Who, Why: e.Why, Result: e.Result})
	}
	return v
}

// addConsumer adds the consumer's generation, pause and progress, and the stream of the message.
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

// causeOf returns the cause that is named in the headers of a row. If known is not nil, causeOf returns
// known.
func causeOf(known *causeView, f *why.Facts, r *store.StoredRow) *causeView {
	if known != nil || r.Message == nil {
		return known
	}
	id, has := r.Message.Headers.Get(semelheader.Causation)
	if !has {
		return nil
	}
	v := &causeView{ID: string(id)}
	if correlation, has := r.Message.Headers.Get(semelheader.Correlation); has {
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

// printWhy prints what the stores know about a message. The state of the message and the next commands come
// first.
func printWhy(c *command.CLI, v whyView) error {
	var b strings.Builder
	for i, found := range v.Found {
		if i > 0 {
			b.WriteString("\n")
		}
		writeFound(c, &b, found)
	}
	if len(v.Found) == 0 {
		writeLooked(c, &b, v)
	}
	for _, s := range v.NotAsked {
		fmt.Fprintf(&b, "\nstore %s\n", legible.Printable(s.Store))
		writeField(c, &b, "cannot be known", legible.Printable("whether it is there: "+s.Why))
	}
	if lines := strings.Count(b.String(), "\n"); c.OutTerminal && c.Height > 0 && lines >= c.Height { // the start of the output has scrolled off the screen
		for _, found := range v.Found {
			b.WriteString("\n")
			writeAnswerOf(c, &b, found)
		}
	}
	_, err := io.WriteString(c.Out, b.String())
	return command.Failed(err)
}

// writeAnswerOf prints the state of a message and the next commands.
func writeAnswerOf(c *command.CLI, b *strings.Builder, v foundView) {
	name := "consumer " + legible.Printable(v.Consumer)
	if v.Source != "" {
		name += ", source " + legible.Printable(v.Source)
	}
	fmt.Fprintln(b, c.Wrapped(name+": "+legible.Printable(v.Says), 0))
	for _, command := range v.Commands {
		fmt.Fprintln(b, "  "+terminal.Line(command))
	}
}

func writeFound(c *command.CLI, b *strings.Builder, v foundView) {
	writeAnswerOf(c, b, v)
	fmt.Fprintln(b)
	for _, m := range v.Markers {
		writeField(c, b, "marker", markerOf(m))
	}
	if len(v.Markers) == 0 && !v.noMarkers {
		writeField(c, b, "marker", "none")
	}
	for _, unread := range v.Unread {
		writeField(c, b, "cannot be known", legible.Printable(unread))
	}
	writeAround(c, b, v)
	for _, r := range v.Rows {
		fmt.Fprintf(b, "\nrow %d\n", r.Number)
		writeField(c, b, "content", r.Fingerprint)
		for _, f := range messages.FieldsOf(r.Detail) {
			if f.Name != "number" && f.Name != "consumer" && f.Name != "source" {
				writeField(c, b, f.Name, f.Value)
			}
		}
		_ = messages.WritePayload(b, r.Detail) // writing to a strings.Builder cannot fail
	}
	if v.MoreRows > 0 {
		fmt.Fprintf(b, "\nand %d further rows; semel messages ls --state all --id ID lists them\n", v.MoreRows)
	}
}

// writeAround prints the records other than rows: the leased key, the consumer's generation and pause, the
// stream, and more.
func writeAround(c *command.CLI, b *strings.Builder, v foundView) {
	field := func(name, format string, args ...any) {
		writeField(c, b, name, legible.Printable(fmt.Sprintf(format, args...)))
	}
	if k := v.Leased; k != nil {
		field("leased key", "%s; first claimed %s, leased until %s, kept until %s; %d claims, of %d the end is known", cmp.Or(k.Ended, "not ended"), output.Moment(k.First), output.Moment(k.Until), output.Moment(k.Kept), k.Started, k.Finished)
	}
	if v.Generation != "" {
		field("generation", "%s", v.Generation)
	}
	if p := v.Paused; p != nil {
		field("paused", "%s by %s: %s", output.Moment(p.At), p.By, p.Why)
	}
	if v.Progress != nil {
		field("consumer told last", "%s", output.Moment(*v.Progress))
	}
	if s := v.Stream; s != nil {
		field("stream", "%s is at version %d, and %d rows wait", s.Name(), s.Last, s.Blocked)
	}
	for _, m := range v.Missing {
		field("missing", "versions %d to %d", m.From, m.To)
	}
	if by := v.CausedBy; by != nil {
		if by.Consumer != "" {
			field("caused by", "%s, of consumer %s", by.ID, by.Consumer)
		} else {
			field("caused by", "%s", by.ID)
		}
		if by.Correlation != "" && by.Correlation != by.ID {
			field("began with", "%s", by.Correlation)
		}
	}
	for _, r := range v.Caused {
		field("caused", "row %d of %s, %s: %s", r.Number, r.Consumer, r.State, messages.IDOf(r))
	}
	if v.MoreCaused {
		field("caused", "and more")
	}
	if v.NoCaused != "" {
		field("caused", "not known: %s", v.NoCaused)
	}
	for _, r := range v.Replays {
		field("in range of replay", "%d (%s, %s) by %s, %s: %s", r.Number, r.Kind, r.State, r.Who, output.Moment(r.Started), r.Why)
	}
	for _, e := range v.Erasures {
		field("erased", "%s by %s: %s", output.Moment(e.At), e.Who, e.Why)
	}
}

func markerOf(m markerView) string {
	text := fmt.Sprintf("%s, %s", m.Outcome, output.Moment(m.At))
	if m.Fingerprint != "" {
		text += ", content " + m.Fingerprint
	}
	if m.Generation > 0 {
		text += fmt.Sprintf(", identity of generation %d", m.Generation)
	}
	if m.Result {
		text += ", with a result"
	}
	return text
}

// writeLooked prints, for a message that no store knows, which records were searched and what the search
// cannot find.
func writeLooked(c *command.CLI, b *strings.Builder, v whyView) {
	fmt.Fprintln(b, c.Wrapped(v.name()+" is not known: no consumer that was asked has a marker or a row of it, so that it has not come here, unless one of the things below is so, or its id is another: semel consumers identity ls says where consumers find ids.", 0))
	for _, l := range v.Looked {
		fmt.Fprintf(b, "\n%s\n", legible.Printable(fmt.Sprintf("consumer %s in store %s", l.Consumer, l.Store)))
		for _, cannot := range l.Cannot {
			writeField(c, b, "cannot be known", legible.Printable(cannot))
		}
	}
	if len(v.Looked) == 0 && len(v.NotAsked) == 0 {
		fmt.Fprintln(b, "no consumer has met any message here")
	}
}

// writeField prints a field. A long value continues on further lines in the same column.
func writeField(c *command.CLI, b *strings.Builder, name, value string) {
	if value != "" {
		fmt.Fprintf(b, "%-*s  %s\n", command.FieldWidth, name, c.Wrapped(value, command.FieldWidth+2))
	}
}
