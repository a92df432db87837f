package filestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

func TestAStoreThatIsOpenedAgainKnowsWhatWasCommitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.log")
	s := open(t, path)
	scope := scopeOf(t, s, "shop")
	if v := apply(t, s, scope, "1"); v.Kind != store.Fresh {
		t.Fatalf("the first is %v", v)
	}
	// A batch that is open at the time of the crash leaves nothing in the file.
	begin(t, s, scope, "2")
	crash(t, s)

	s = open(t, path)
	if again := scopeOf(t, s, "shop"); again != scope {
		t.Errorf("scope %d is %d now", scope, again)
	}
	if other := scopeOf(t, s, "bank"); other == scope {
		t.Errorf("two scopes have the number %d", other)
	}
	if v := apply(t, s, scope, "1"); !v.Already(store.Applied) {
		t.Errorf("a copy is %v", v)
	}
	if v := apply(t, s, scope, "2"); v.Kind != store.Fresh {
		t.Errorf("what was not committed is %v", v)
	}
	if n := count(t, s, "effects"); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}
}

func TestACrashWithinTheLastRecordLosesThisCommitAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.log")
	s := open(t, path)
	scope := scopeOf(t, s, "shop")
	apply(t, s, scope, "1")
	whole := s.log.size
	apply(t, s, scope, "2")
	crash(t, s)
	data, err := os.ReadFile(path)
	check(t, err)

	for end := whole; end < int64(len(data)); end++ {
		cut := data[:end:end]
		reopenTorn(t, scope, cut)
		// After a crash, the file system may have allocated space for the rest of the cut-off record.
		reopenTorn(t, scope, append(cut, make([]byte, int64(len(data))-end)...))
	}
}

// reopenTorn opens a file whose second commit is cut off, and repeats that commit.
func reopenTorn(t *testing.T, scope int64, data []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.log")
	check(t, os.WriteFile(path, data, 0o600))
	for _, want := range []store.VerdictKind{store.Fresh, store.Seen} {
		s := open(t, path)
		if v := apply(t, s, scope, "1"); !v.Already(store.Applied) {
			t.Fatalf("of %d bytes: the whole commit is %v", len(data), v)
		}
		if v := apply(t, s, scope, "2"); v.Kind != want {
			t.Fatalf("of %d bytes: the commit that was cut off is %v, want %v", len(data), v, want)
		}
		if n := count(t, s, "effects"); n != 2 {
			t.Fatalf("of %d bytes: %d effects, want 2", len(data), n)
		}
		crash(t, s)
	}
}

func TestDamageBeforeTheLastRecordIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.log")
	s := open(t, path)
	scope := scopeOf(t, s, "shop")
	apply(t, s, scope, "1")
	last := s.log.size
	apply(t, s, scope, "2")
	crash(t, s)
	data, err := os.ReadFile(path)
	check(t, err)
	for i := range last {
		data[i] ^= 1
		check(t, os.WriteFile(path, data, 0o600))
		data[i] ^= 1
		if s, err := Open(path); !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d: %v", i, err)
			if err == nil {
				crash(t, s)
			}
		}
	}
}

func TestOneProcessHasTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.log")
	open(t, path)
	if _, err := Open(path); err == nil {
		t.Error("a file was opened twice")
	}
}

func TestACommitWhoseSyncFailsIsTakenBackOrUnknown(t *testing.T) {
	full := errors.New("no space left")
	for _, c := range []struct {
		name  string
		fails int // number of syncs that fail, starting with the first
		want  store.CommitOutcome
	}{{"one sync", 1, store.NotCommitted}, {"that of the repair, too", 2, store.CommitUnknown}} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "test.log"))
			scope := scopeOf(t, s, "shop")
			sync, n := s.log.syncFile, 0
			s.log.syncFile = func() error {
				if n++; n <= c.fails {
					return full
				}
				return sync()
			}
			b, _ := begin(t, s, scope, "1")
			r := b.Commit(context.Background(), store.Ending{})
			if r.Outcome != c.want || !errors.Is(r.Err, full) || s.Classify(r.Err) != store.ClassDown {
				t.Errorf("%+v", r)
			}
			if n := count(t, s, "effects"); n != 0 {
				t.Errorf("%d effects of it are visible", n)
			}
			if v := apply(t, s, scope, "1"); v.Kind != store.Fresh {
				t.Errorf("the next try is %v", v)
			}
		})
	}
}

func TestNoMarkIsJudgedWhileACommitMayStillBeInTheFile(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "test.log"))
	scope := scopeOf(t, s, "shop")
	sync, broken := s.log.syncFile, true
	s.log.syncFile = func() error {
		if broken {
			return errors.New("no space left")
		}
		return sync()
	}
	b, _ := begin(t, s, scope, "1")
	if r := b.Commit(context.Background(), store.Ending{}); r.Outcome != store.CommitUnknown {
		t.Fatalf("%+v", r)
	}
	_, _, err := s.Begin(context.Background(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte("1"), As: store.Applied}})
	if s.Classify(err) != store.ClassDown {
		t.Errorf("Begin says %v", err)
	}
	broken = false
	if v := apply(t, s, scope, "1"); v.Kind != store.Fresh {
		t.Errorf("the next try is %v", v)
	}
}

func TestWhatOnlyAnInboxCanDoIsRefused(t *testing.T) {
	ctx := context.Background()
	s := open(t, filepath.Join(t.TempDir(), "test.log"))
	scope := scopeOf(t, s, "shop")
	claim := []store.Mark{{Scope: scope, Claim: store.Claim{Number: 1, Token: store.NewToken()}}}
	if _, _, err := s.Begin(ctx, store.TxOptions{}, claim); !errors.Is(err, semel.ErrUnsupported) {
		t.Errorf("a claim: %v", err)
	}
	b, _ := begin(t, s, scope, "1")
	r := b.Commit(ctx, store.Ending{Rows: []store.Row{{State: store.StateParked}}})
	if r.Outcome != store.NotCommitted || !errors.Is(r.Err, semel.ErrUnsupported) {
		t.Errorf("a row: %+v", r)
	}
	if v := apply(t, s, scope, "1"); v.Kind != store.Fresh {
		t.Errorf("the next try is %v", v)
	}
}

// crash closes the file without the store's knowledge, as if the process had died.
func crash(t testing.TB, s *Store) {
	t.Helper()
	s.writing.Lock()
	defer s.writing.Unlock()
	s.closed = true
	check(t, s.log.close())
}

func scopeOf(t testing.TB, s *Store, source string) int64 {
	t.Helper()
	number, err := s.Scope(context.Background(), "billing", source, 0)
	check(t, err)
	return number
}

// begin opens a batch with one marker to write. If the message is new, begin also writes the effect.
func begin(t testing.TB, s *Store, scope int64, id string) (store.Batch[*Tx], store.Verdict) {
	t.Helper()
	b, v, err := s.Begin(context.Background(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte(id), As: store.Applied}})
	check(t, err)
	if v[0].Kind == store.Fresh {
		_, err := b.Tx(0).Add("effects", 1)
		check(t, err)
	}
	return b, v[0]
}

func apply(t testing.TB, s *Store, scope int64, id string) store.Verdict {
	t.Helper()
	b, v := begin(t, s, scope, id)
	if r := b.Commit(context.Background(), store.Ending{}); r.Outcome != store.Committed {
		t.Fatalf("%+v", r)
	}
	return v
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
