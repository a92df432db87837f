package sqlsuite

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/intents"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Personal is a store, with a function that searches the store's database for a word.
type Personal struct {
	Store *sqlstore.Store
	// Where returns the places in the database that contain a word in one of the given encodings.
	Where func(t testing.TB, forms [][]byte) []string
}

// Forms returns the encodings of a word that can occur in a database or in a dump: plain text, hexadecimal digits, and
// base64 at every alignment.
func Forms(word string) [][]byte {
	all := [][]byte{[]byte(word), []byte(hex.EncodeToString([]byte(word))), []byte(strings.ToUpper(hex.EncodeToString([]byte(word))))}
	for before := range 3 { // the first and the last digits also depend on the neighbouring bytes
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), word...))
		all = append(all, []byte(text[[]int{0, 2, 3}[before]:len(text)-2]))
	}
	return all
}

// Has reports whether a text contains a word in one of the given encodings.
func Has(text []byte, forms [][]byte) bool {
	for _, form := range forms {
		if bytes.Contains(text, form) {
			return true
		}
	}
	return false
}

// person writes a word of its own into every field that a user can fill.
type person struct {
	t    testing.TB
	s    *sqlstore.Store
	word string
	// The number under which the store keeps the person's source.
	scope int64
}

// traces lists the places where a store can keep a user's text, each with the operation that writes it. Add every new
// place to this list, so that the suite checks that an erasure removes the text from this place.
var traces = []struct {
	name   string
	leaves func(p *person, id string)
}{
	{"a message that was set aside", func(p *person, id string) {
		p.put(p.mark(id, 1), store.Row{State: store.StateParked, Reason: semel.Reason("because of " + p.word), Message: p.message(), FirstError: "first " + p.word, LastError: "last " + p.word})
		p.discard(id)
	}},
	{"a message that was edited", func(p *person, id string) {
		p.put(p.mark(id, 1), store.Row{State: store.StateParked, Reason: semel.ReasonExhausted, Message: p.message()})
		for n := range 2 {
			r := p.readRows(id)[0]
			p.must(p.s.Edit(p.t.Context(), r.Number, r.Revision, fmt.Appendf(nil, `{"mail":"%s","edit":%d}`, p.word, n), "", store.Act{Verb: "edit", Who: "ana", Why: "ticket 7"}))
		}
		p.discard(id)
	}},
	{"a dead letter", func(p *person, id string) {
		p.put(p.mark(id, 1), store.Row{State: store.StateDeadLettered, Reason: semel.ReasonExhausted, Message: p.message()})
		p.discard(id)
	}},
	{"a conflict", func(p *person, id string) {
		p.put(p.mark(id, 1), store.Row{State: store.StateParked, Message: &semel.Message{}})
		p.put(p.mark(id, 2), store.Row{Conflict: true, State: store.StateParked, Reason: semel.ReasonConflict, Message: p.message()})
		p.discard(id)
	}},
	{"a message that waited in a line", func(p *person, id string) {
		m := p.mark(id, 1)
		m.Line = []byte("billing\x00" + p.word)
		p.put(m, store.Row{State: store.StateReceived, Message: p.message()})
		p.discard(id)
	}},
	{"steps and errors of attempts", func(p *person, id string) {
		p.put(p.mark(id, 1), store.Row{State: store.StateReceived, Message: p.message()})
		p.work(id, store.ClaimEnding{State: store.StateFailedRetryable, Ran: true, Error: "first " + p.word})
		p.work(id, store.ClaimEnding{State: store.StateReceived, Stepped: true, Ran: true, Steps: []store.StepDone{{Name: "one", Output: []byte("1" + p.word)}}})
		p.work(id, store.ClaimEnding{State: store.StateCompleted, Ran: true, Error: "last " + p.word, Steps: []store.StepDone{{Name: "one", Output: []byte("12" + p.word)}}})
	}},
	{"a result", func(p *person, id string) {
		m := p.mark(id, 1)
		b, _ := Begin(p.t, p.s, store.TxOptions{}, []store.Mark{m})
		p.must(p.s.KeepResult(p.t.Context(), b.Tx(0), admin.ResultOf{Scope: m.Scope, ID: m.ID}, []byte("made of "+p.word)))
		commitBatch(p.t, b)
	}},
	{"the result of a leased key", func(p *person, id string) {
		key, token := p.key(id), store.NewToken()
		_, err := p.s.ClaimKey(p.t.Context(), keystore.Claim{Key: key, Token: token, Lease: time.Minute, Keep: time.Hour})
		p.must(err)
		p.must(p.s.EndKey(p.t.Context(), key, token, keystore.Ending{Event: keystore.Complete, Result: []byte("answer for " + p.word), Keep: time.Hour}))
	}},
	{"an intent, its answer and what that caused", func(p *person, id string) {
		p.put(p.mark(id, 1), store.Row{State: store.StateParked, Message: &semel.Message{}})
		p.discard(id)
		first := p.addIntent(p.key(id), "sender", id+" intent")
		p.addIntent(first, "second", id+" of the intent")
	}},
}

func (p *person) must(err error) {
	p.t.Helper()
	must.OK(p.t, err)
}

func (p *person) key(id string) semel.Key {
	return semel.Key{Consumer: "billing", Source: "shop", ID: id}
}

func (p *person) mark(id string, content byte) store.Mark {
	return store.Mark{Scope: p.scope, Consumer: "billing", Source: "shop", ID: []byte(id), Fingerprint: semel.Fingerprint{Version: 1, Sum: [16]byte{content}}, As: store.Applied}
}

// message returns a message that has the word in every field that a producer can fill.
func (p *person) message() *semel.Message {
	w := p.word
	return &semel.Message{
		Topic: "payments", Key: []byte(w), Body: []byte(`{"mail":"` + w + `"}`),
		Headers:    semel.Headers{{Name: "mail", Value: []byte(w)}, {Name: w, Value: []byte("\xff" + w)}},
		Attributes: semel.Attributes{Type: "paid", Subject: w, DataSchema: w, ID: w, Source: w},
		Origin:     semel.Origin{BrokerID: w},
	}
}

func (p *person) put(m store.Mark, r store.Row) {
	p.t.Helper()
	if !r.Conflict {
		m.As = r.State.Outcome()
	}
	b, _ := Begin(p.t, p.s, store.TxOptions{}, []store.Mark{m})
	if result := b.Commit(p.t.Context(), store.Ending{Rows: []store.Row{r}}); result.Outcome != store.Committed {
		p.t.Fatalf("%+v", result)
	}
}

func (p *person) readRows(id string) []store.StoredRow {
	p.t.Helper()
	rows, err := p.s.Rows(p.t.Context(), store.RowFilter{IDs: []string{id}, Bodies: true})
	p.must(err)
	return rows
}

// discard discards all rows of an identity.
func (p *person) discard(id string) {
	p.t.Helper()
	for _, r := range p.readRows(id) {
		p.must(errors.Join(p.s.Discard(p.t.Context(), store.Act{Verb: "discard", Who: "ana", Why: "ticket 7"}, r.Seen())...))
	}
}

// work claims the row of an identity in a batch, and ends the claim as the parameter e says.
func (p *person) work(id string, e store.ClaimEnding) {
	p.t.Helper()
	claims, err := p.s.Claim(p.t.Context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Numbers: []int64{p.readRows(id)[0].Number}, Most: 1, Lease: time.Minute})
	if err != nil || len(claims) != 1 {
		p.t.Fatal(claims, err)
	}
	m := p.mark(id, 1)
	m.Claim, e.Claim = claims[0].Claim, claims[0].Claim
	b, _ := Begin(p.t, p.s, store.TxOptions{}, []store.Mark{m})
	if result := b.Commit(p.t.Context(), store.Ending{Claims: []store.ClaimEnding{e}}); result.Outcome != store.Committed {
		p.t.Fatalf("%+v", result)
	}
}

// addIntent writes an intent of a message, lets the sender of the intent store a result, and discards the
// intent.
func (p *person) addIntent(cause semel.Key, sender, id string) semel.Key {
	p.t.Helper()
	scope, err := p.s.Scope(p.t.Context(), sender, "", 0)
	p.must(err)
	m := store.Mark{Scope: scope, Consumer: sender, ID: []byte(id), As: store.Waiting, Cause: intents.Cause(cause)}
	b, _ := Begin(p.t, p.s, store.TxOptions{}, nil)
	_, err = p.s.ReceiveIn(p.t.Context(), b.Tx(store.All), []store.Mark{m}, []*semel.Message{p.message()}, reasonname.None)
	p.must(err)
	p.must(p.s.KeepResult(p.t.Context(), b.Tx(store.All), admin.ResultOf{Scope: scope, ID: m.ID}, []byte("answered "+p.word)))
	commitBatch(p.t, b)
	p.discard(id)
	return semel.Key{Consumer: sender, ID: id}
}

// NothingIsLeft tests each place in which a text can be stored. The test writes the words of two persons into all
// places, erases the first person in several transactions, and searches for the words of both persons.
func NothingIsLeft(t *testing.T, open func(t testing.TB) Personal) {
	for _, trace := range traces {
		t.Run("P4_of_"+strings.ReplaceAll(trace.name, " ", "_"), func(t *testing.T) {
			p := open(t)
			ana := newPerson(t, p.Store, "Ana-Vukovic-1")
			trace.leaves(ana, "x")
			if found := p.Where(t, Forms(ana.word)); len(found) == 0 {
				t.Fatal("the situation did not occur: the word stands nowhere")
			}
			ana.erase([]string{"x"}, 1)
			wantNowhere(t, p, ana.word)
			ana.erasedBy("x")
		})
	}
	t.Run("P4_of_all_that_is_drawn", func(t *testing.T) {
		p := open(t)
		random := rand.New(rand.NewPCG(7, 16))
		for round := range 6 {
			ana, bo := newPerson(t, p.Store, fmt.Sprint("Ana-Vukovic-", round)), newPerson(t, p.Store, fmt.Sprint("Bo-Lindqvist-", round))
			var ids []string
			for n := range 12 {
				id := fmt.Sprintf("%d/%d", round, n)
				traces[random.IntN(len(traces))].leaves(ana, id)
				traces[random.IntN(len(traces))].leaves(bo, id+" other")
				ids = append(ids, id)
			}
			random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			ana.erase(ids[:5], 1+random.IntN(4))
			ana.erase(ids, 1+random.IntN(30))
			wantNowhere(t, p, ana.word)
			if len(p.Where(t, Forms(bo.word))) == 0 {
				t.Error("nothing is left of the other person")
			}
			for _, id := range ids {
				ana.expectAbsorbed(id)
				bo.expectKept(id + " other")
			}
		}
	})
}

func newPerson(t testing.TB, s *sqlstore.Store, word string) *person {
	t.Helper()
	p := &person{t: t, s: s, word: word}
	var err error
	p.scope, err = s.Scope(t.Context(), "billing", "shop", 0)
	p.must(err)
	return p
}

func wantNowhere(t testing.TB, p Personal, word string) {
	t.Helper()
	must.OK(t, p.Store.Scrub(t.Context(), true))
	if found := p.Where(t, Forms(word)); len(found) > 0 {
		t.Errorf("%s stands in %q still", word, found)
	}
}

// erase erases identities. The parameter most is the maximum number of identities in one transaction.
func (p *person) erase(ids []string, most int) {
	p.t.Helper()
	o := admin.Erasing{Filter: admin.ErasureFilter{IDs: ids}, Most: most, Act: store.Act{Verb: "erase", Who: "ana", Why: "ticket 7"}}
	for o.After.Part != admin.ErasureDone {
		done, err := p.s.Erase(p.t.Context(), o)
		p.must(err)
		if len(done.Left) > 0 {
			p.t.Errorf("left are %+v", done.Left)
		}
		o.After = done.Next
	}
}

// erasedBy checks that the recorded changes name the erased identity if the identity has no row.
func (p *person) erasedBy(id string) {
	p.t.Helper()
	acts, err := p.s.Erased(p.t.Context(), p.key(id))
	p.must(err)
	if without := len(p.readRows(id)) == 0; without != (len(acts) == 1) || without && acts[0].Who != "ana" {
		p.t.Errorf("of %s these acts are found: %+v", id, acts)
	}
}

// expectAbsorbed checks that a duplicate of a message has no effect. A message that has only a leased key is not
// checked.
func (p *person) expectAbsorbed(id string) {
	p.t.Helper()
	_, there, err := p.s.Marker(p.t.Context(), p.key(id))
	p.must(err)
	if v := Asked[*sql.Tx](p.t, p.s, p.mark(id, 1))[0]; there && v.Kind != store.Seen {
		p.t.Errorf("a copy of %s is %v", id, v)
	}
	if a, err := p.s.ClaimKey(p.t.Context(), keystore.Claim{Key: p.key(id), Token: store.NewToken(), Lease: time.Minute, Keep: time.Hour}); !there && (err != nil || a.State != keystore.Completed || len(a.Result) > 0) {
		p.t.Errorf("a copy of key %s is %+v, %v", id, a, err)
	}
}

// expectKept checks that the rows of an identity have not lost any data.
func (p *person) expectKept(id string) {
	p.t.Helper()
	for _, r := range p.readRows(id) {
		if r.Reason == reasonname.Erased || r.BodyRemoved {
			p.t.Errorf("row %d of the other person is erased", r.Number)
		}
	}
}

// TablesWith returns the tables of a PostgreSQL schema in which any column of a row contains one of the given
// encodings. The function query runs a query and returns the first column of the rows.
func TablesWith(t testing.TB, schema string, forms [][]byte, query func(text string, args ...any) []string) (found []string) {
	t.Helper()
	tables := query("select table_name::text from information_schema.tables where table_schema = $1 and table_type = 'BASE TABLE'", schema)
	if len(tables) < 10 {
		t.Fatalf("the schema has the tables %q", tables)
	}
	for _, name := range tables {
		for _, row := range query(fmt.Sprintf("select t::text from %q.%q t", schema, name)) {
			if Has([]byte(row), forms) {
				found = append(found, name)
				break
			}
		}
	}
	return found
}
