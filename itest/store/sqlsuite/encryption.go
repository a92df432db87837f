package sqlsuite

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/encryption"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/store"
)

// KeyOf returns an encryption key for tests, which is not secret.
func KeyOf(b byte) []byte { return bytes.Repeat([]byte{b}, encryption.KeySize) }

// CipherOf returns a cipher with one key for each byte of the parameter keys. The first key is the current key.
func CipherOf(t testing.TB, keys ...byte) store.Cipher {
	t.Helper()
	var former [][]byte
	for _, k := range keys[1:] {
		former = append(former, KeyOf(k))
	}
	c := must.Get(encryption.New(KeyOf(keys[0]), former...))(t)
	return c
}

// Encrypting is one database that stores with different ciphers open.
type Encrypting[Tx any] struct {
	// Open opens a store with a cipher. Encryption is required for rows that were written after the time since; a zero
	// time means that encryption is never required.
	Open func(t testing.TB, c store.Cipher, since time.Time) EncryptingStore[Tx]
	// Where returns the tables that contain a word in one of the given encodings.
	Where func(t testing.TB, forms [][]byte) []string
	// Exec runs a statement as a user that may write the tables but does not have the key. "{prefix}" is
	// replaced by the prefix of the table names.
	Exec func(t testing.TB, text string)
}

// EncryptingStore has the operations that read or write encrypted data.
type EncryptingStore[Tx any] interface {
	store.TxStore[Tx]
	store.Inbox
	store.Leases
	admin.Results[Tx]
}

const hiddenWord = "Ana-Vukovic"

// hiddenMessage returns a message that has the word in every field that is encrypted.
func hiddenMessage() *semel.Message {
	return (&person{word: hiddenWord}).message()
}

// Encrypted checks that a store encrypts all stored messages, on every way in which a message can be stored.
func Encrypted[Tx any](t *testing.T, e Encrypting[Tx]) {
	t.Run("P4_what_is_kept_of_messages_is_encrypted_and_read_again", func(t *testing.T) {
		s := e.Open(t, CipherOf(t, 1), time.Time{})
		marks := hiddenMarks[Tx](t, s)
		keepHidden(t, s, marks)
		stepHidden(t, s, marks[3])
		if found := e.Where(t, Forms(hiddenWord)); len(found) > 0 {
			t.Errorf("%q contain it in plain text", found)
		}
		wantShown(t, s, marks, 4)
		wantHidden(t, e.Open(t, nil, time.Time{}), "without a key")
		wantHidden(t, e.Open(t, CipherOf(t, 2), time.Time{}), "was not given")
		wantShown(t, e.Open(t, CipherOf(t, 2, 1), time.Time{}), marks, 4)
	})
	t.Run("P4_what_was_written_before_is_read_as_it_is", func(t *testing.T) {
		s := e.Open(t, nil, time.Time{})
		marks := hiddenMarks[Tx](t, s)
		keepHidden(t, s, marks)
		if found := e.Where(t, Forms(hiddenWord)); len(found) == 0 {
			t.Fatal("the situation did not occur: the word stands nowhere")
		}
		wantShown(t, e.Open(t, CipherOf(t, 1), time.Time{}), marks, 4)
	})
	testMovedRows(t, e)
	testKeyedFingerprints(t, e)
}

// testMovedRows checks that a store rejects rows that a user without the encryption key has moved to another
// consumer or source.
func testMovedRows[Tx any](t *testing.T, e Encrypting[Tx]) {
	for _, to := range []struct{ from, consumer, source, set, says string }{
		{"consumer", "audit", "shop", "scope = %[1]d, consumer = (select consumer from {prefix}scopes where number = %[1]d)", "belongs to something else"},
		{"source", "billing", "web", "scope = %[1]d", "belongs to something else"},
		{"consumer_in_its_column_alone", "audit", "shop", "consumer = (select consumer from {prefix}scopes where number = %[1]d)", "belongs to consumer"},
	} {
		t.Run("P4_a_row_that_was_moved_from_another_"+to.from+"_is_refused", func(t *testing.T) {
			s := e.Open(t, CipherOf(t, 1), time.Time{})
			marks := hiddenMarks[Tx](t, s)
			keepHidden(t, s, marks)
			n := must.Get(s.Scope(t.Context(), to.consumer, to.source, 0))(t)
			rows, err := s.Rows(t.Context(), store.RowFilter{IDs: []string{string(marks[3].ID)}})
			if err != nil || len(rows) != 1 || rows[0].Unreadable != "" {
				t.Fatalf("%+v, %v", rows, err)
			}
			e.Exec(t, fmt.Sprintf("update {prefix}inbox set "+to.set+" where number = %[2]d", n, rows[0].Number))
			claims := must.Get(s.Claim(t.Context(), store.ClaimOptions{Consumer: to.consumer, Token: store.NewToken(), Most: 10, Lease: time.Minute}))(t)
			found := false
			for _, c := range claims {
				if c.Row.Number == rows[0].Number {
					found = true
					if !strings.Contains(c.Row.Unreadable, to.says) || len(c.Row.Message.Body) > 0 {
						t.Errorf("it would be handled: %q with %q", c.Row.Unreadable, c.Row.Message.Body)
					}
				}
			}
			if !found {
				t.Errorf("the situation did not occur: %+v", claims)
			}
		})
	}
}

// hiddenMarks returns the markers to write for messages with new identities.
func hiddenMarks[Tx any](t testing.TB, s store.TxStore[Tx]) []store.Mark {
	t.Helper()
	var ids []string
	for i := range 4 {
		ids = append(ids, fmt.Sprintf("%s/%d", strings.ReplaceAll(t.Name(), "/", " "), i))
	}
	return Marks(t, s, "shop", ids...)
}

// keepHidden parks one message in a batch and another message in the program's own transaction, receives a third
// message, and stores a result.
func keepHidden[Tx any](t testing.TB, s EncryptingStore[Tx], marks []store.Mark) {
	t.Helper()
	first := marks[0]
	first.As = store.Parked
	b, _ := Begin(t, s, store.TxOptions{}, []store.Mark{first})
	if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{{State: store.StateParked, Message: hiddenMessage(), FirstError: "first: " + hiddenWord, LastError: "last: " + hiddenWord}}}); r.Outcome != store.Committed {
		t.Fatalf("%+v", r)
	}
	marks = marks[1:]
	b, _ = Begin(t, s, store.TxOptions{}, marks[:1])
	into := func(m store.Mark, reason semel.Reason) {
		var err error
		all, messages := []store.Mark{m}, []*semel.Message{hiddenMessage()}
		switch to := any(s).(type) {
		case store.CallerTx[Tx]:
			_, err = to.ReceiveIn(t.Context(), b.Tx(0), all, messages, reason)
		case admin.QueueStore[Tx]:
			err = to.ReceiveQueued(b.Tx(0), all, messages, reason, func([]store.Verdict) error { return nil })
		}
		must.OK(t, err)
	}
	parked, waits := marks[1], marks[2]
	parked.As, waits.As = store.Parked, store.Waiting
	into(parked, reasonname.Suppressed)
	into(waits, reasonname.None)
	must.OK(t, s.KeepResult(t.Context(), b.Tx(0), admin.ResultOf{Scope: marks[0].Scope, ID: marks[0].ID}, []byte("made of "+hiddenWord)))
	commitBatch(t, b)
}

// stepHidden commits a step of the waiting message. The step has an output.
func stepHidden[Tx any](t testing.TB, s EncryptingStore[Tx], m store.Mark) {
	t.Helper()
	claims, err := s.Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 1, Lease: time.Minute})
	if err != nil || len(claims) != 1 || !bytes.Contains(claims[0].Row.Message.Body, []byte(hiddenWord)) {
		t.Fatalf("%+v, %v", claims, err)
	}
	m.Claim = claims[0].Claim
	b, _ := Begin(t, s, store.TxOptions{}, []store.Mark{m})
	if r := b.Commit(context.WithoutCancel(t.Context()), store.Ending{Claims: []store.ClaimEnding{{Claim: m.Claim, State: store.StateReceived, Stepped: true, Ran: true, Error: "invalid input: " + hiddenWord, Steps: []store.StepDone{{Name: "one", Output: []byte("step of " + hiddenWord)}, {Name: "two"}}}}}); r.Outcome != store.Committed {
		t.Fatalf("%+v", r)
	}
}

// wantShown checks that the store can read all stored messages and results.
func wantShown[Tx any](t testing.TB, s EncryptingStore[Tx], marks []store.Mark, want int) {
	t.Helper()
	found := 0
	for _, m := range marks {
		rows := must.Get(s.Rows(t.Context(), store.RowFilter{IDs: []string{string(m.ID)}, Bodies: true}))(t)
		for _, r := range rows {
			found++
			wanted := hiddenMessage()
			if r.Unreadable != "" || string(r.Message.Body) != string(wanted.Body) || string(r.Message.Key) != hiddenWord || fmt.Sprint(r.Message.Headers) != fmt.Sprint(wanted.Headers) || r.Message.Attributes != wanted.Attributes || r.Message.Origin.BrokerID != hiddenWord {
				t.Errorf("row %d is %+v with %+v", r.Number, r, r.Message)
			}
			switch wantFirst, wantLast := "first: "+hiddenWord, "last: "+hiddenWord; {
			case len(r.Steps) > 0:
				wantFirst, wantLast = "invalid input: "+hiddenWord, "invalid input: "+hiddenWord
				fallthrough
			case r.Key.ID == string(marks[0].ID):
				if r.FirstError != wantFirst || r.LastError != wantLast {
					t.Errorf("the errors of row %d are %q and %q", r.Number, r.FirstError, r.LastError)
				}
			}
			if len(r.Steps) > 0 && (string(r.Steps[0].Output) != "step of "+hiddenWord || r.Steps[1].Output != nil) {
				t.Errorf("the steps are %q", r.Steps)
			}
		}
	}
	results, err := s.Results(t.Context(), []admin.ResultOf{{Scope: marks[1].Scope, ID: marks[1].ID}})
	if err != nil || string(results[0]) != "made of "+hiddenWord {
		t.Errorf("the result is %q, %v", results, err)
	}
	if found != want-1 {
		t.Errorf("%d rows are shown, want %d", found, want-1)
	}
}

// wantHidden checks that the rows are listed, but that no message of these rows can be read.
func wantHidden[Tx any](t testing.TB, s EncryptingStore[Tx], why string) {
	t.Helper()
	rows, err := s.Rows(t.Context(), store.RowFilter{Bodies: true})
	if err != nil || len(rows) < 3 {
		t.Fatal(len(rows), err)
	}
	if first := rows[0]; first.FirstError != "encrypted" || !strings.HasSuffix(first.LastError, "encrypted") {
		t.Errorf("the errors of row %d are %q and %q", first.Number, first.FirstError, first.LastError)
	}
	for _, r := range rows {
		if !strings.Contains(r.Unreadable, why) || !strings.Contains(r.LastError, why) || len(r.Message.Body)+len(r.Message.Key)+len(r.Message.Headers) > 0 || r.Message.Type() != "paid" || r.Key.ID == "" {
			t.Errorf("row %d is %+v with %+v, want that it says %q", r.Number, r, r.Message, why)
		}
	}
}
