package file_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/source"
)

func TestALastLineWithoutItsEnd(t *testing.T) {
	t.Run("trap_T97_a_torn_last_line_is_left_unread_with_its_place_and_read_when_it_is_whole", func(t *testing.T) {
		for name, torn := range map[string]string{
			"half an object":            `{"a":`,
			"half an array":             `[1,`,
			"a number that may go on":   `12`,
			"a word":                    `true`,
			"a string":                  `"whole?"`,
			"an object and more":        `{} {`,
			"an object that is refused": `{"a":1,"a":2}`,
			"half a character":          "{\"a\":\"\xc3",
			"more than a line may have": `{"a":"` + strings.Repeat("x", 64<<10),
		} {
			t.Run(name, func(t *testing.T) {
				o := file.Options{Format: file.JSON, MaxLine: 64 << 10}
				d := newFixture(t, "1\n2\n"+torn, o)
				d.ack(d.expect("1", "2")...)
				d.expectEnd()
				d.expectNotice(d.path, "byte 4", "no line end", "left unread")
				d.close()
				if p := d.store.position(d.path); p.Offset != 4 {
					t.Errorf("the position is %+v", p)
				}
			})
		}
		d := newFixture(t, "1\n"+`{"a":`, plain)
		d.ack(d.expect("1")...)
		d.expectEnd()
		d.close()
		d.append("3}\n4\n")
		d.open(plain)
		d.expect(`{"a":3}`, "4")
	})
	t.Run("a whole object or array is read", func(t *testing.T) {
		for _, whole := range []string{`{"a":1}`, `[1]`, "{}\r", " {} "} {
			d := newFixture(t, "1\n"+whole, plain)
			d.ack(d.expect("1", whole)...)
			d.expectEnd()
			if len(d.notices) > 0 {
				t.Errorf("%s: notices %q", whole, d.notices)
			}
		}
	})
	t.Run("what is written while the rest is settled is read, in whole lines", func(t *testing.T) {
		d := newFixture(t, "1\n"+`{"a":`, plain)
		first := d.expect("1")
		if got, err := d.fetch(time.Millisecond); err != nil || len(got) > 0 {
			t.Fatal(got, err)
		}
		long := `"` + strings.Repeat("x", 600<<10) + `"`
		d.append(long + "}\n[2")
		d.ack(d.expect(`{"a":` + long + "}")...)
		d.append("]")
		d.ack(d.expect("[2]")...)
		d.ack(first...)
		d.expectEnd()
	})
	t.Run("a followed file waits for the end, whatever is there", func(t *testing.T) {
		runFollowed(t, `{"a":1}`, func(t *testing.T, d *fixture) {
			d.expectNoDelivery()
			d.append("\n")
			d.expect(`{"a":1}`)
		})
	})
	t.Run("of a followed file that was replaced a torn line is told and left", func(t *testing.T) {
		runFollowed(t, "1\n{", func(t *testing.T, d *fixture) {
			d.expect("1")
			d.rename()
			write(t, d.path, "2\n")
			d.expect("2")
			all := strings.Join(d.notices, "\n")
			for _, want := range []string{"was replaced", "byte 2", "left unread"} {
				if !strings.Contains(all, want) {
					t.Errorf("the notices do not say %q: %q", want, d.notices)
				}
			}
		})
	})
	t.Run("what is torn of standard input is told", func(t *testing.T) {
		var notices []string
		o := file.Options{Format: file.JSON, Notice: func(s string) { notices = append(notices, s) }}
		s := file.Stdin(io.MultiReader(strings.NewReader("1\n{"), bytes.NewReader([]byte(`"a"`))), o)
		got, err := s.Fetch(t.Context(), wide)
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		if _, err := s.Settle(t.Context(), []source.Settlement{{Delivery: &got[0], Kind: semel.Ack}}); err != nil {
			t.Error(err)
		}
		if got, err := s.Fetch(t.Context(), wide); !errors.Is(err, source.ErrEnd) || len(got) > 0 {
			t.Errorf("%d deliveries: %v", len(got), err)
		}
		if len(notices) != 1 || !strings.Contains(notices[0], "stdin") || !strings.Contains(notices[0], "byte 2") {
			t.Errorf("notices %q", notices)
		}
	})
}
