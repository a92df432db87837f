package file_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/file"
)

func TestTheLogHasTheFileAndWhereReadingBegan(t *testing.T) {
	d := newFixture(t, "1\n22\n", file.Options{Format: file.JSON})
	if about := d.LogValue().String(); about != "[file="+d.path+"]" {
		t.Errorf("before it is open: %s", about)
	}
	d.ack(d.expect("1", "22")[0])
	d.close()
	d.open(file.Options{Format: file.JSON})
	d.expect("22")
	if about := d.LogValue().String(); about != "[file="+d.path+" from=2]" {
		t.Errorf("after it is open: %s", about)
	}
	if about := file.Stdin(strings.NewReader(""), file.Options{}).LogValue().String(); about != "[file=stdin]" {
		t.Errorf("standard input: %s", about)
	}
}

func TestAFileIsReadOnFromItsPosition(t *testing.T) {
	plain := file.Options{Format: file.JSON}
	t.Run("case_13_it_is_the_offset_after_the_last_contiguous_settled_line_with_length_and_hash", func(t *testing.T) {
		d := newFixture(t, "1\n22\n333\n", plain)
		got := d.expect("1", "22", "333")
		d.ack(got[2], got[0])
		d.close()
		if p := d.store.position(d.path); p.Offset != 2 || p.Length != 9 || len(p.Check) != 16 {
			t.Errorf("the position is %+v", p)
		}
		d.open(plain)
		d.ack(d.expect("22", "333")...)
		d.expectEnd()
		d.close()
		d.open(plain)
		d.expectEnd()
	})
	t.Run("case_13_lines_that_were_appended_are_read", func(t *testing.T) {
		d := newFixture(t, strings.Repeat("1234567\n", 2000), plain)
		all, err := d.fetch(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		rest, _ := d.fetch(time.Minute)
		d.ack(append(all, rest...)...)
		d.expectEnd()
		d.close()
		d.append("2\n")
		d.open(plain)
		d.expect("2")
		if len(d.notices) > 0 {
			t.Errorf("notices: %q", d.notices)
		}
	})
	t.Run("case_13_a_last_line_without_end_is_settled_and_what_follows_its_end_is_read", func(t *testing.T) {
		d := newFixture(t, "1\n[2]", plain)
		d.ack(d.expect("1", "[2]")...)
		d.close()
		d.append("\n3\n")
		d.open(plain)
		d.expect("3")
	})
	t.Run("case_13_the_name_of_the_lane_is_the_path_as_it_was_written", func(t *testing.T) {
		d := newFixture(t, "1\n", file.Options{Format: file.JSON, Lane: "mine"})
		if got := d.expect("1"); got[0].Lane.ID != "mine" {
			t.Errorf("the lane is %q", got[0].Lane.ID)
		}
		t.Chdir(t.TempDir())
		write(t, "here.jsonl", "1\n")
		got, err := file.Open("./here.jsonl", plain).Fetch(t.Context(), wide)
		if err != nil || got[0].Lane.ID != "here.jsonl" {
			t.Errorf("the lane is %v: %v", got, err)
		}
	})
}

func TestAnotherFileIsReadFromItsStartAndSaidSo(t *testing.T) {
	plain := file.Options{Format: file.JSON}
	for name, text := range map[string]string{
		"other content of the same length": "9\n8\n",
		"a shorter file":                   "1\n",
		"a longer one":                     "9\n8\n7\n",
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, "1\n2\n", plain)
			d.ack(d.expect("1", "2")...)
			d.close()
			write(t, d.path, text)
			d.open(plain)
			d.expect(strings.Fields(text)...)
			d.expectNotice("another file", d.path, "byte 4", "from its start")
		})
	}
	t.Run("case_13_a_change_before_the_hashed_4_KiB_is_not_seen_and_one_inside_is", func(t *testing.T) {
		text := strings.Repeat("1234567\n", 1024)
		for at, seen := range map[int]bool{0: false, 4095: false, 4096: true, 8190: true} {
			d := newFixture(t, text, plain)
			for range 2 {
				got, _ := d.fetch(time.Minute)
				d.ack(got...)
			}
			d.close()
			changed := []byte(text)
			changed[at] = ' '
			write(t, d.path, string(changed))
			d.open(plain)
			_, _ = d.fetch(time.Minute)
			if (len(d.notices) > 0) != seen {
				t.Errorf("changed at %d: notices %q", at, d.notices)
			}
		}
	})
}

func TestThePositionIsSavedWhenItIsWorthIt(t *testing.T) {
	t.Run("case_13_at_most_once_a_second_at_the_end_and_at_close", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newFixture(t, strings.Repeat("1\n", 100), file.Options{Format: file.JSON})
			got, err := d.fetch(time.Minute)
			if err != nil || len(got) != 100 {
				t.Fatal(len(got), err)
			}
			for _, v := range got[:90] {
				d.ack(v)
				wait(t, 100*time.Millisecond)
			}
			if d.store.saves < 8 || d.store.saves > 9 {
				t.Errorf("saved %d times in 9 s", d.store.saves)
			}
			d.ack(got[90:]...)
			d.expectEnd()
			saves := d.store.saves
			if p := d.store.position(d.path); p.Offset != 200 {
				t.Errorf("at the end the position is %d", p.Offset)
			}
			d.close()
			if d.store.saves != saves {
				t.Error("it was saved again though nothing had changed")
			}
		})
	})
	t.Run("case_13_at_the_end_without_waiting", func(t *testing.T) {
		d := newFixture(t, "1\n", file.Options{Format: file.JSON})
		d.ack(d.expect("1")...)
		d.expectEnd()
		if p := d.store.position(d.path); p.Offset != 2 {
			t.Errorf("the position is %d", p.Offset)
		}
	})
	t.Run("a followed file saves while it waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newFixture(t, "1\n", file.Options{Format: file.JSON, Follow: true})
			d.ack(d.expect("1")...)
			if _, err := d.fetch(3 * time.Second); err != nil || d.store.position(d.path).Offset != 2 {
				t.Errorf("the position is %d: %v", d.store.position(d.path).Offset, err)
			}
			d.close()
		})
	})
	t.Run("a file that is read saves while one line stays unsettled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newFixture(t, "1\n2\n", file.Options{Format: file.JSON})
			d.ack(d.expect("1", "2")[0])
			if _, err := d.fetch(3 * time.Second); err != nil || d.store.position(d.path).Offset != 2 {
				t.Errorf("the position is %d: %v", d.store.position(d.path).Offset, err)
			}
		})
	})
}

func TestAPositionThatCannotBeKeptCostsNoMessageAndIsSaid(t *testing.T) {
	broken := errors.New("the disk is full")
	t.Run("law_13_a_store_that_is_down_at_the_first_Fetch_is_an_error_and_nothing_is_delivered", func(t *testing.T) {
		d := newFixture(t, "1\n", file.Options{Format: file.JSON})
		d.store.failWith(broken)
		if got, err := d.fetch(time.Minute); !errors.Is(err, broken) || len(got) > 0 || len(d.given) > 0 {
			t.Fatalf("%v with %d deliveries", err, len(got))
		}
		d.store.failWith(nil)
		d.expect("1")
	})
	t.Run("settlements_hold_in_memory_and_the_position_is_saved_later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newFixture(t, "1\n2\n3\n", file.Options{Format: file.JSON})
			got := d.expect("1", "2", "3")
			d.store.failWith(broken)
			for _, v := range got[:2] {
				wait(t, 2*time.Second)
				d.ack(v)
			}
			d.expectNotice("byte 2", "not saved", "the disk is full")
			d.store.failWith(nil)
			wait(t, 2*time.Second)
			d.ack(got[2])
			if p := d.store.position(d.path); p.Offset != 6 {
				t.Errorf("the position is %d", p.Offset)
			}
		})
	})
	t.Run("each_time_that_it_begins_to_fail_is_told_once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newFixture(t, "1\n2\n3\n4\n5\n", file.Options{Format: file.JSON})
			for i, v := range d.expect("1", "2", "3", "4", "5") {
				d.store.failWith([]error{broken, broken, nil, broken, broken}[i])
				wait(t, 2*time.Second)
				d.ack(v)
			}
			if n := strings.Count(strings.Join(d.notices, "\n"), "was not saved"); n != 2 {
				t.Errorf("there were %d notices: %q", n, d.notices)
			}
		})
	})
	t.Run("Close_says_that_it_was_not_saved", func(t *testing.T) {
		d := newFixture(t, "1\n", file.Options{Format: file.JSON})
		d.ack(d.expect("1")...)
		d.store.failWith(broken)
		if err := d.Close(t.Context()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "lines come again") {
			t.Errorf("Close says: %v", err)
		}
		if err := d.Close(t.Context()); err != nil {
			t.Errorf("the second Close says: %v", err)
		}
	})
	t.Run("without_a_store_the_file_is_read_from_its_start", func(t *testing.T) {
		d := newFixture(t, "1\n", file.Options{Format: file.JSON})
		for range 2 {
			s := file.Open(d.path, file.Options{Format: file.JSON})
			if got, err := s.Fetch(t.Context(), wide); err != nil || len(got) != 1 {
				t.Errorf("%d deliveries: %v", len(got), err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// wait lets the virtual time of a synctest bubble pass.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
}
