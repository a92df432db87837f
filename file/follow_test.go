package file_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/source"
)

var followed = file.Options{Format: file.JSON, Follow: true}

// runFollowed runs a test with a followed file in a synctest bubble.
func runFollowed(t *testing.T, text string, f func(t *testing.T, d *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, text, followed)
		f(t, d)
		d.close()
	})
}

// expectNoDelivery fails the test if a delivery arrives within some time.
func (d *fixture) expectNoDelivery() {
	d.t.Helper()
	if got, err := d.fetch(5 * time.Second); err != nil || len(got) > 0 {
		d.t.Fatalf("%d deliveries: %v", len(got), err)
	}
}

func TestAFollowedFileIsReadAsItGrows(t *testing.T) {
	t.Run("what is appended is delivered within the poll interval", func(t *testing.T) {
		runFollowed(t, "", func(t *testing.T, d *fixture) {
			d.expectNoDelivery()
			done := make(chan time.Duration)
			go func() {
				began := time.Now()
				d.expect("1")
				done <- time.Since(began)
			}()
			wait(t, time.Second)
			d.append("1\n")
			if took := <-done; took > time.Second+file.DefaultPoll {
				t.Errorf("it took %v", took-time.Second)
			}
		})
	})
	t.Run("a line without its end waits for it", func(t *testing.T) {
		runFollowed(t, "1\n2", func(t *testing.T, d *fixture) {
			d.expect("1")
			d.expectNoDelivery()
			d.append("3")
			d.expectNoDelivery()
			d.append("\r")
			d.expectNoDelivery()
			d.append("\n4\n")
			d.expect("23", "4")
		})
	})
	t.Run("a poll interval of its own", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newFixture(t, "", file.Options{Format: file.JSON, Follow: true, Poll: time.Hour})
			d.expectNoDelivery()
			d.append("1\n")
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
			defer cancel()
			if got, err := d.Fetch(ctx, wide); err != nil || len(got) != 1 || time.Since(began) > time.Minute {
				t.Errorf("%d deliveries after %v: %v", len(got), time.Since(began), err)
			}
		})
	})
	t.Run("Close ends a Fetch that waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newFixture(t, "", followed)
			ended := make(chan error)
			go func() {
				_, err := d.Fetch(t.Context(), wide)
				ended <- err
			}()
			synctest.Wait()
			d.close()
			if err := <-ended; !errors.Is(err, semel.ErrClosed) {
				t.Errorf("it ended with %v", err)
			}
		})
	})
}

func TestAFollowedFileThatIsReplacedIsReadToItsEndAndThenTheNewOne(t *testing.T) {
	t.Run("the rest of the old one comes first, with its last line", func(t *testing.T) {
		runFollowed(t, "1\n", func(t *testing.T, d *fixture) {
			first := d.expect("1")
			old := d.rename()
			d.expectNoDelivery() // the old file is renamed and the new one does not exist yet
			d.append2(old, "2\n[3]")
			write(t, d.path, "4\n")
			d.ack(d.expect("2", "[3]", "4")...)
			d.expectNotice(d.path, "was replaced", "from its start")
			d.ack(first...)
		})
	})
	t.Run("the position is of the new one", func(t *testing.T) {
		runFollowed(t, "1\n2\n3\n", func(t *testing.T, d *fixture) {
			d.ack(d.expect("1", "2", "3")[1:]...)
			d.rename()
			write(t, d.path, "4\n")
			d.ack(d.expect("4")...)
			d.expectNoDelivery()
			if p := d.store.position(d.path); p.Offset != 2 || p.Length != 2 {
				t.Errorf("the position is %+v", p)
			}
		})
	})
	t.Run("what is handed back of the old one is read from it", func(t *testing.T) {
		runFollowed(t, "1\n2\n", func(t *testing.T, d *fixture) {
			got := d.expect("1", "2")
			d.rename()
			write(t, d.path, "5\n6\n")
			d.expect("5", "6")
			d.settle(semel.Nack, time.Second, got[1])
			again := d.expect("2")
			d.ack(again[0], got[0])
			d.settle(semel.Nack, 0, got...) // these lines are already acked, so a nack changes nothing
			d.expectNoDelivery()
		})
	})
	t.Run("a new one that cannot be opened yet is tried again", func(t *testing.T) {
		runFollowed(t, "1\n", func(t *testing.T, d *fixture) {
			d.expect("1")
			d.rename()
			if err := os.Mkdir(d.path, 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := d.fetch(time.Minute); err == nil {
				t.Error("a directory at the path is no error")
			}
			if err := os.Remove(d.path); err != nil {
				t.Fatal(err)
			}
			write(t, d.path, "2\n")
			d.expect("2")
		})
	})
}

func TestAFollowedFileThatIsTruncatedIsReadFromItsStart(t *testing.T) {
	for name, text := range map[string]string{
		"shorter than before":               "7\n",
		"as long as before":                 "7\n8\n",
		"grown beyond what was read before": "7\n8\n9\n",
	} {
		t.Run(name, func(t *testing.T) {
			runFollowed(t, "1\n2\n", func(t *testing.T, d *fixture) {
				got := d.expect("1", "2")
				d.expectNoDelivery()
				write(t, d.path, text)
				var all []source.Delivery
				for len(all) < len(text)/2 {
					more, err := d.fetch(time.Minute)
					if err != nil || len(more) == 0 {
						t.Fatal(more, err)
					}
					all = append(all, more...)
				}
				d.expectNotice(d.path, "truncated or written anew", "from its start")
				d.ack(got...)
				if string(all[0].Message.Body) != "7" || all[0].Message.Origin.Offset != 0 {
					t.Errorf("the first is %q at %d", all[0].Message.Body, all[0].Message.Origin.Offset)
				}
			})
		})
	}
	t.Run("what is handed back afterwards is kept, what was before is counted as gone", func(t *testing.T) {
		runFollowed(t, "1\n2\n3\n", func(t *testing.T, d *fixture) {
			got := d.expect("1", "2", "3")
			d.expectNoDelivery()
			d.settle(semel.Nack, time.Hour, got[0])
			write(t, d.path, "9\n")
			d.expect("9")
			d.expectNotice("1 lines that were handed back are gone")
			d.settle(semel.Nack, time.Second, got[1])
			d.expect("2")
		})
	})
}

// rename renames the file and returns the new path.
func (d *fixture) rename() string {
	d.t.Helper()
	old := d.path + ".1"
	if err := os.Rename(d.path, old); err != nil {
		d.t.Fatal(err)
	}
	return old
}

// append2 appends text to a file other than the file that the test reads.
func (d *fixture) append2(path, text string) {
	d.t.Helper()
	other := *d
	other.path = path
	other.append(text)
}
