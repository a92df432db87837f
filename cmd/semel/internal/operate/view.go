package operate

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// View shows a row. If a text is not valid UTF-8, the field with the suffix _base64 has the text in base64.
type View struct {
	Store     string       `json:"store"`
	Number    int64        `json:"number"`
	Revision  int64        `json:"revision"`
	State     admin.State  `json:"state"`
	Reason    semel.Reason `json:"reason"`
	Conflict  bool         `json:"conflict"`
	Surrogate bool         `json:"surrogate"`
	Consumer  string       `json:"consumer"`
	Source    string       `json:"source"`
	ID        string       `json:"id"`
	IDBase64  string       `json:"id_base64,omitempty"`
	Type      string       `json:"type"`
	Subject   string       `json:"subject,omitempty"`
	// Recipient is the system that receives the intent; empty for rows that are not intents.
	Recipient string `json:"recipient,omitempty"`
	// Stream and Version are the row's stream and version; zero if the row has none.
	Stream       string `json:"stream,omitempty"`
	StreamBase64 string `json:"stream_base64,omitempty"`
	Version      int64  `json:"version,omitempty"`
	// Key is the key that orders the message. Lined reports that other messages of the same key or partition
	// wait until this message is finished.
	Key       string `json:"key,omitempty"`
	KeyBase64 string `json:"key_base64,omitempty"`
	Lined     bool   `json:"lined,omitempty"`
	// LastStep is the last completed step. The next attempt continues after the last completed step.
	LastStep string `json:"last_step,omitempty"`
	// Steps are the completed steps, in order.
	Steps    []StepView `json:"steps,omitempty"`
	Attempts int        `json:"attempts"`
	Repeated int        `json:"repeated"`
	First    string     `json:"first_error"`
	Last     string     `json:"last_error"`
	Started  int        `json:"started,omitempty"`
	// Calls is the number of calls to another system, and UnknownCalls the number of calls with an unknown
	// outcome. Called is the start of the first call.
	Calls        int        `json:"calls,omitempty"`
	UnknownCalls int        `json:"unknown_calls,omitempty"`
	Called       *time.Time `json:"called_at,omitempty"`
	Due          *time.Time `json:"due_at,omitempty"`
	Claimed      *time.Time `json:"claimed_until,omitempty"`
	Received     time.Time  `json:"received_at"`
	Changed      time.Time  `json:"changed_at"`
	Topic        string     `json:"topic"`
	Partition    int32      `json:"partition"`
	Offset       int64      `json:"offset"`
	Size         int        `json:"size"`
}

// NewView returns the view of a row, without headers and payload. The parameter st is the name of the store.
func NewView(st string, r store.StoredRow) View {
	v := View{
		Store: st, Number: r.Number, Revision: r.Revision, State: admin.StateOf(r.State), Reason: r.Reason,
		Conflict: r.Conflict, Surrogate: r.Surrogate,
		Consumer: r.Key.Consumer, Source: r.Key.Source, ID: r.Key.ID,
		Attempts: r.Attempts, Repeated: r.Repeated, First: r.FirstError, Last: r.LastError,
		Received: r.ReceivedAt, Changed: r.ChangedAt, Partition: -1, Offset: -1, Size: r.Size,
	}
	v.ID, v.IDBase64 = text(r.Key.ID)
	v.Stream, v.StreamBase64 = text(r.Stream)
	v.Version, v.Lined = r.Version, r.Place > 0 && (r.State == store.StateParked || r.State.Outcome() == store.Waiting)
	v.Started, v.Due, v.Claimed = r.Started, timeOrNil(r.DueAt), timeOrNil(r.LockedUntil)
	v.Calls, v.UnknownCalls, v.Called = r.CallsStarted, r.CallsStarted-r.CallsFinished, callTimeOrNil(r.CalledAt)
	for _, s := range r.Steps {
		v.Steps, v.LastStep = append(v.Steps, StepView{s.Name, len(s.Output)}), s.Name
	}
	if m := r.Message; m != nil {
		v.Key, v.KeyBase64 = text(string(m.Key))
		v.Type, v.Subject, v.Topic, v.Partition, v.Offset = m.Type(), m.Subject(), m.Topic, m.Origin.Partition, m.Origin.Offset
	}
	return v
}

// StepView shows a completed step. The step's result is left out, because the result can contain a payload.
type StepView struct {
	Name       string `json:"name"`
	OutputSize int    `json:"output_size"`
}

// StreamName returns the name of the stream. A name that is not text is returned in base64.
func (v View) StreamName() string { return nameOf(v.Stream, v.StreamBase64) }

// KeyName returns the key of the message. A key that is not text is returned in base64.
func (v View) KeyName() string { return nameOf(v.Key, v.KeyBase64) }

// timeOrNil returns a pointer to t, or nil for the zero time.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// callTimeOrNil returns the time of the first call, or nil if the store does not know the time; see
// store.StoredRow.CalledAt.
func callTimeOrNil(t time.Time) *time.Time {
	if t.Unix() == 0 {
		return nil
	}
	return timeOrNil(t)
}

// If JSON can contain the text s, the function returns s in the result plain. If JSON cannot contain s, the
// function returns s in base64, in the result encoded.
func text(s string) (plain, encoded string) {
	if utf8.ValidString(s) {
		return s, ""
	}
	return "", base64.StdEncoding.EncodeToString([]byte(s))
}

// Detail shows one row with its changes and, if requested, its headers and payload.
type Detail struct {
	View
	// CallKey is the idempotency key that the endpoint receives; empty if unknown.
	CallKey string `json:"idempotency_key,omitempty"`
	// FirstContent describes the content with which a conflict disagrees; nil if the row is no conflict or
	// the content is unknown.
	FirstContent *FirstView `json:"first_content,omitempty"`
	// Behind is the row that this row waits for; 0 if no earlier row blocks this row.
	Behind        int64        `json:"behind,omitempty"`
	Headers       []HeaderView `json:"headers,omitempty"`
	Payload       *string      `json:"payload,omitempty"`
	PayloadBase64 string       `json:"payload_base64,omitempty"`
	// Edits are the edits of the payload, in order.
	Edits   []EditView   `json:"edits,omitempty"`
	Changes []ChangeView `json:"changes"`
}

// HeaderView is a header of a message.
type HeaderView struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	ValueBase64 string `json:"value_base64,omitempty"`
}

// ChangeView is a change by an operator, as the audit trail records it.
type ChangeView struct {
	At     time.Time `json:"at"`
	Verb   string    `json:"verb"`
	Who    string    `json:"who"`
	Why    string    `json:"why"`
	Result string    `json:"result"`
}

// NewDetail returns the view of a row. With payload set, the view includes headers and body.
func NewDetail(st string, r store.StoredRow, acts []store.Act, payload bool) Detail {
	d := Detail{View: NewView(st, r), Changes: []ChangeView{}}
	for _, a := range acts {
		d.Changes = append(d.Changes, ChangeView{At: a.At, Verb: a.Verb, Who: a.Who, Why: a.Why, Result: a.Result})
	}
	if !payload || r.Message == nil {
		return d
	}
	d.Headers = headersOf(r.Message.Headers)
	d.Payload, d.PayloadBase64 = payloadOf(r.Message.Body)
	return d
}

func headersOf(all semel.Headers) (views []HeaderView) {
	for _, h := range all {
		view := HeaderView{Name: h.Name}
		view.Value, view.ValueBase64 = text(string(h.Value))
		views = append(views, view)
	}
	return views
}

// payloadOf returns a body as text, or in base64 if the body is not text.
func payloadOf(body []byte) (*string, string) {
	plain, encoded := text(string(body))
	if encoded != "" {
		return nil, encoded
	}
	return &plain, ""
}
