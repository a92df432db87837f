package file_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/source"
)

var wide = source.Bound{Messages: 1000, Bytes: 1 << 30}

// fixture reads one file in a test.
type fixture struct {
	*file.Source
	t       *testing.T
	path    string
	store   *positions
	notices []string
	given   []source.Lane
}

func (d *fixture) Given(l source.Lane)                       { d.given = append(d.given, l) }
func (d *fixture) Lost(source.Lane)                          {}
func (d *fixture) Revoking(_ context.Context, _ source.Lane) {}

func newFixture(t *testing.T, text string, o file.Options) *fixture {
	t.Helper()
	d := &fixture{t: t, path: filepath.Join(t.TempDir(), "orders.jsonl"), store: newPositions()}
	write(t, d.path, text)
	d.open(o)
	return d
}

func (d *fixture) open(o file.Options) {
	o.Notice = func(s string) { d.notices = append(d.notices, s) }
	d.Source = file.Open(d.path, o)
	d.Info().Positions("consumer", d.store)
	d.Lanes(d)
	d.t.Cleanup(func() { _ = d.Close(context.Background()) })
}

func (d *fixture) append(text string) {
	d.t.Helper()
	f, err := os.OpenFile(d.path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// fetch calls Fetch once, with the timeout wait.
func (d *fixture) fetch(wait time.Duration) ([]source.Delivery, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), wait)
	defer cancel()
	got, err := d.Fetch(ctx, wide)
	return decodedAll(got), err
}

// decodedAll decodes deliveries, as a consumer does.
func decodedAll(all []source.Delivery) []source.Delivery {
	for i := range all {
		all[i].Decode(nil)
	}
	return all
}

// expect fetches once and fails unless the deliveries have the given bodies.
func (d *fixture) expect(bodies ...string) []source.Delivery {
	d.t.Helper()
	got, err := d.fetch(time.Minute)
	if err != nil {
		d.t.Fatal(err)
	}
	var have []string
	for _, v := range got {
		have = append(have, string(v.Message.Body))
	}
	if strings.Join(have, "|") != strings.Join(bodies, "|") {
		d.t.Fatalf("delivered %q, not %q", have, bodies)
	}
	return got
}

func (d *fixture) settle(kind semel.SettleKind, after time.Duration, all ...source.Delivery) {
	d.t.Helper()
	s := make([]source.Settlement, len(all))
	for i := range all {
		s[i] = source.Settlement{Delivery: &all[i], Kind: kind, After: after}
	}
	if left, err := d.Settle(d.t.Context(), s); err != nil || len(left) > 0 {
		d.t.Fatalf("left %v: %v", left, err)
	}
}

func (d *fixture) ack(all ...source.Delivery) { d.t.Helper(); d.settle(semel.Ack, 0, all...) }

func (d *fixture) expectEnd() {
	d.t.Helper()
	if got, err := d.fetch(time.Minute); !errors.Is(err, source.ErrEnd) || len(got) > 0 {
		d.t.Fatalf("%d deliveries and %v, not the end", len(got), err)
	}
}

func (d *fixture) close() {
	d.t.Helper()
	if err := d.Close(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

// expectNotice fails unless there was exactly one notice, with the given words.
func (d *fixture) expectNotice(words ...string) {
	d.t.Helper()
	if len(d.notices) != 1 {
		d.t.Fatalf("notices: %q", d.notices)
	}
	for _, w := range words {
		if !strings.Contains(d.notices[0], w) {
			d.t.Errorf("the notice %q does not say %q", d.notices[0], w)
		}
	}
	d.notices = nil
}

func TestLinesAreFoundWithAllKindsOfLineEnds(t *testing.T) {
	for name, text := range map[string]string{
		"a line end after each line":  "1\n2\n[3]\n",
		"no line end after the last":  "1\n2\n[3]",
		"carriage returns":            "1\r\n2\r\n[3]\r\n",
		"a byte-order mark":           "\xef\xbb\xbf1\n2\n[3]\n",
		"blank lines":                 "\n\r\n1\n \t\n2\n\n\n[3]\n\n",
		"a mark before a blank line":  "\xef\xbb\xbf\n1\n2\n[3]",
		"carriage return at the end":  "1\n2\n[3]\r\n\r\n",
		"space after the last of all": "1\n2\n[3]\n   ",
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, text, file.Options{Format: file.JSON})
			d.ack(d.expect("1", "2", "[3]")...)
			d.expectEnd()
		})
	}
	t.Run("an empty file", func(t *testing.T) {
		newFixture(t, "", file.Options{}).expectEnd()
	})
	t.Run("a byte-order mark in the middle is malformed", func(t *testing.T) {
		d := newFixture(t, "1\n\xef\xbb\xbf2\n", file.Options{Format: file.JSON})
		if got := d.expect("1", "\xef\xbb\xbf2"); got[1].Refused != semel.ReasonMalformed {
			t.Errorf("refused as %q", got[1].Refused)
		}
	})
}

func TestADeliverySaysWhereItIsFrom(t *testing.T) {
	d := newFixture(t, "{}\n\n{}\n", file.Options{Format: file.JSON})
	if got, err := d.Fetch(t.Context(), source.Bound{Messages: 1, Bytes: 1}); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	got := d.expect("{}")[0]
	lane := source.Lane{ID: d.path, Epoch: 1}
	if got.Lane != lane || len(d.given) != 1 || d.given[0] != lane || got.Before != source.Unknown {
		t.Errorf("lane %v, given %v, before %d", got.Lane, d.given, got.Before)
	}
	if m := got.Message; m.Topic != "orders.jsonl" || m.Origin != (semel.Origin{Partition: -1, Offset: 4}) {
		t.Errorf("topic %q, origin %v", m.Topic, m.Origin)
	}
}

func TestABadLineIsDeliveredAsRefusedAndHarmsNoNeighbour(t *testing.T) {
	t.Run("trap_17_it_is_delivered_raw_and_the_next_line_follows", func(t *testing.T) {
		bad := []string{`{"a":1,"a":2}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\xfe\"}", `nonsense`, `{"cut":`}
		d := newFixture(t, "1\n"+strings.Join(bad, "\n")+"\n2\n", file.Options{Format: file.JSON})
		got := d.expect(append(append([]string{"1"}, bad...), "2")...)
		for i, v := range got {
			want := semel.ReasonMalformed
			if i == 0 || i == len(got)-1 {
				want = reasonname.None
			}
			if v.Refused != want {
				t.Errorf("line %d is refused as %q, not %q", i, v.Refused, want)
			}
		}
		d.ack(got...)
		d.expectEnd()
	})
}

func TestALineOverTheLimitIsDeliveredWithItsBeginningAndLength(t *testing.T) {
	t.Run("a line of exactly the limit is a message", func(t *testing.T) {
		text := `"` + strings.Repeat("x", 64<<10-2) + `"`
		d := newFixture(t, text+"\r\n"+text+"\n"+text+"\n", file.Options{Format: file.JSON, MaxLine: 64 << 10})
		d.expect(text, text, text)
	})
	t.Run("one byte more is too large", func(t *testing.T) {
		text := `"` + strings.Repeat("x", 64<<10-1) + `"`
		d := newFixture(t, text+"\r\n1\n", file.Options{Format: file.JSON, MaxLine: 64 << 10})
		expectTooLarge(t, d.expect(text[:64<<10], "1")[0], 0, 64<<10+1)
	})
	t.Run("a line of 64 MiB is passed over in little memory", func(t *testing.T) {
		d := newFixture(t, "1\n", file.Options{Format: file.JSON})
		if err := os.Truncate(d.path, 2+64<<20); err != nil {
			t.Fatal(err)
		}
		d.append("\n2\n")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := d.expect("1", strings.Repeat("\x00", 64<<10), "2")
		runtime.ReadMemStats(&after)
		expectTooLarge(t, got[1], 2, 64<<20)
		if used := after.TotalAlloc - before.TotalAlloc; used > 56<<20 {
			t.Errorf("reading it allocated %d bytes", used)
		}
		d.settle(semel.Nack, 0, got[1])
		expectTooLarge(t, d.expect(strings.Repeat("\x00", 64<<10))[0], 2, 64<<20)
	})
}

func expectTooLarge(t *testing.T, d source.Delivery, offset, length int64) {
	t.Helper()
	said, _ := d.Message.Headers.Get(file.HeaderLength)
	if d.Refused != semel.ReasonTooLarge || d.Message.Origin.Offset != offset || string(said) != strconv.FormatInt(length, 10) {
		t.Errorf("refused as %q at %d with length %s", d.Refused, d.Message.Origin.Offset, said)
	}
}

func TestAnUnreadableFileIsReportedBeforeAndAtTheFirstFetch(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "file"), "")
	for name, c := range map[string]struct {
		path string
		o    file.Options
		says string
		is   error
	}{
		"a missing file":        {filepath.Join(folder, "none"), file.Options{}, "there is none in " + folder + "; create it, correct the path, or wait for it with follow: true", fs.ErrNotExist},
		"a directory":           {folder, file.Options{}, "it is a directory; name a file in it", nil},
		"a file as a folder":    {filepath.Join(folder, "file", "x"), file.Options{}, "correct the path", nil},
		"a device":              {os.DevNull, file.Options{}, "standard input", nil},
		"an unknown format":     {filepath.Join(folder, "file"), file.Options{Format: 9}, "CloudEvents, Envelope or JSON", nil},
		"too short a line":      {filepath.Join(folder, "file"), file.Options{MaxLine: 10}, "at least 65536", nil},
		"a negative poll":       {filepath.Join(folder, "file"), file.Options{Poll: -1}, "positive", nil},
		"a missing file's lane": {filepath.Join(folder, "none"), file.Options{Lane: "x", Follow: true}, "there is none in " + folder + "; create it or correct the path: ", fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			s := file.Open(c.path, c.o)
			got, err := s.Fetch(t.Context(), wide)
			if len(got) > 0 {
				t.Error("something was delivered")
			}
			for _, err := range []error{err, s.Validate()} {
				if err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("it says: %v", err)
				}
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAMissingFileIsNamedAsGivenWithTheFolderItWasLookedForIn(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	says := file.Open(filepath.Join("below", "none"), file.Options{}).Validate()
	want := "file " + filepath.Join("below", "none") + ": there is none in " + filepath.Join(here, "below") + "; "
	if says == nil || !strings.HasPrefix(says.Error(), want) {
		t.Errorf("it says %v, want %s…", says, want)
	}
}

func TestASourceThatCouldNotOpenItsFileTriesAgain(t *testing.T) {
	d := newFixture(t, "", file.Options{Format: file.JSON})
	if err := os.Remove(d.path); err != nil {
		t.Fatal(err)
	}
	if _, err := d.fetch(time.Minute); !errors.Is(err, fs.ErrNotExist) || len(d.given) > 0 {
		t.Fatalf("%v, given %v", err, d.given)
	}
	write(t, d.path, "1\n")
	d.expect("1")
}

func TestSeveralReadersOfOneConsumerHaveEachTheirOwnFile(t *testing.T) {
	t.Run("trap_38_a_key_stays_in_the_lane_of_its_file_whatever_other_files_are_read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := newPositions()
			first := newFixture(t, "1\n2\n", file.Options{Format: file.JSON})
			second := newFixture(t, "3\n4\n", file.Options{Format: file.JSON})
			for _, d := range []*fixture{first, second} {
				d.store = store
				d.Info().Positions("consumer", store)
			}
			a, b := first.expect("1", "2"), second.expect("3", "4")
			if a[0].Lane == b[0].Lane {
				t.Errorf("both have the lane %v", a[0].Lane)
			}
			first.ack(a...)
			second.ack(b[0])
			first.close()
			second.close()
			if p, q := store.position(first.path), store.position(second.path); p.Offset != 4 || q.Offset != 2 {
				t.Errorf("the positions are %d and %d", p.Offset, q.Offset)
			}
			second.open(file.Options{Format: file.JSON})
			second.expect("4")
		})
	})
}

func TestADeadLetterIsRefused(t *testing.T) {
	d := newFixture(t, "1\n", file.Options{Format: file.JSON})
	got := d.expect("1")
	left, err := d.Settle(t.Context(), []source.Settlement{{Delivery: &got[0], Kind: semel.DeadLetter}})
	if len(left) != 1 || !errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), "park") {
		t.Errorf("left %v: %v", left, err)
	}
}

func TestFlowOfAnotherLaneChangesNothing(t *testing.T) {
	d := newFixture(t, "1\n", file.Options{Format: file.JSON})
	d.Flow(source.Lane{ID: "another", Epoch: 1}, false)
	d.Flow(source.Lane{ID: d.path, Epoch: 7}, false)
	d.expect("1")
}

func TestNoFurtherLineIsReadWhileTooManyAreHandedBack(t *testing.T) {
	t.Run("law_11_nothing_grows_for_ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const most = 10_000
			d := newFixture(t, strings.Repeat("1\n", most)+"2\n", file.Options{Format: file.JSON})
			for taken := 0; taken < most; {
				got, err := d.fetch(time.Minute)
				if err != nil || len(got) == 0 {
					t.Fatal(len(got), err)
				}
				taken += len(got)
				d.settle(semel.Nack, time.Hour, got...)
			}
			if got, err := d.fetch(time.Minute); err != nil || len(got) > 0 {
				t.Fatalf("%d more were read: %v", len(got), err)
			}
			if got, err := d.fetch(2 * time.Hour); err != nil || len(got) != wide.Messages {
				t.Errorf("%d came when they were due: %v", len(got), err)
			}
		})
	})
}
