package runs

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/legible"
	"golang.org/x/term"
)

// screen is a terminal that reports each key immediately. After the method close, the terminal shows its
// previous content.
type screen struct {
	out     io.Writer
	keys    chan string
	restore func()
	size    func(usual int) (columns, rows int)
}

// The control sequences for terminals.
const (
	otherScreen = "\x1b[?1049h\x1b[?25l" // second screen, hidden cursor
	firstScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	restOfLine  = "\x1b[K"
	restOfAll   = "\x1b[J"
)

// keyboard reports whether standard input is a terminal.
func keyboard(in io.Reader) bool {
	f, is := in.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}

func openScreen(s command.Streams) (*screen, error) {
	sc := &screen{out: s.Out, keys: make(chan string), restore: func() {}, size: func(usual int) (int, int) {
		columns, rows, err := term.GetSize(int(os.Stdout.Fd()))
		if err != nil || columns < 1 || rows < 1 {
			return usual, usualRows
		}
		return columns, rows
	}}
	if in, is := s.In.(*os.File); is && keyboard(in) {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return nil, fmt.Errorf("the terminal's keys cannot be read: %w", err)
		}
		sc.restore = func() { _ = term.Restore(int(in.Fd()), before) }
		var reading sync.WaitGroup // nobody waits for this goroutine: the read ends with the process
		reading.Go(func() { readKeys(in, sc.keys) })
	}
	_, err := io.WriteString(sc.out, otherScreen)
	return sc, err
}

// usualRows is the assumed height of a terminal with unknown height.
const usualRows = 24

func (s *screen) close() {
	_, _ = io.WriteString(s.out, firstScreen)
	s.restore()
}

// draw shows a frame. The first two lines and the last line are always visible. Between the second line and
// the last line, draw shows as many lines as fit, starting at line top.
func (s *screen) draw(frame []string, rows, top int) error {
	if head, foot := frame[:2], frame[len(frame)-1:]; len(frame) > rows && rows > 3 {
		body := frame[2 : len(frame)-1]
		body = body[min(top, len(body)-(rows-3)):][:rows-3]
		frame = append(append(append([]string(nil), head...), body...), foot...)
	}
	var text strings.Builder
	text.WriteString(home)
	for i, line := range frame {
		if i > 0 {
			text.WriteString("\r\n")
		}
		text.WriteString(terminal.Line(line))
		text.WriteString(restOfLine)
	}
	text.WriteString(restOfAll)
	_, err := io.WriteString(s.out, text.String())
	return err
}

func compareFigures(a, b *float64) int {
	value := func(f *float64) float64 {
		if f == nil {
			return -1
		}
		return *f
	}
	return cmp.Compare(value(a), value(b))
}

// keysLine explains the keys in the last line of a frame.
const keysLine = "q: end  left, right: sort  up, down: scroll"

// frame returns the printed lines of a look, cut to the given number of columns: a heading, the table, and
// notes about what was not readable.
func (l *topLook) frame(columns int, s sortState) []string {
	head := fmt.Sprintf("%s  %s, by %s", l.At.Format(time.TimeOnly), output.Counted(len(l.Consumers), len(l.Consumers), "consumer"), sortOrders[s.orderIndex].name)
	lines := []string{fit(head, columns)}
	all := slices.Clone(l.Consumers)
	slices.SortStableFunc(all, func(a, b topView) int {
		return cmp.Or(sortOrders[s.orderIndex].compare(a, b), strings.Compare(a.Consumer, b.Consumer))
	})
	if len(all) == 0 && l.Asking {
		lines = append(lines, "")
	} else if len(all) == 0 {
		lines = append(lines, fit("there are no consumers: neither the policy nor a store knows one", columns))
	} else {
		var table bytes.Buffer
		_ = output.Table(&table, all, topColumns(all, l.At), columns) // writing to a buffer cannot fail
		lines = append(lines, strings.Split(strings.TrimRight(table.String(), "\n"), "\n")...)
	}
	for _, note := range l.Notes {
		for line := range strings.Lines(terminal.Wrap(legible.Printable(note), columns)) {
			lines = append(lines, fit(strings.TrimSuffix(line, "\n"), columns))
		}
	}
	return lines
}

func fit(text string, columns int) string {
	if columns == terminal.Unlimited {
		return text
	}
	return terminal.Cut(text, columns)
}

func unlimitedUnless(narrow bool, columns int) int {
	if !narrow {
		return terminal.Unlimited
	}
	return columns
}

func topColumns(all []topView, now time.Time) []output.Column[topView] {
	storeOf := func(v topView) string { return v.Store }
	number := func(title string, of func(topView) (int64, bool)) output.Column[topView] {
		return output.Text(title, func(v topView) string {
			n, more := of(v)
			switch {
			case v.Unread:
				return "?"
			case more:
				return fmt.Sprintf("%d+", n)
			}
			return fmt.Sprint(n)
		})
	}
	return []output.Column[topView]{
		output.Flexible("STORE", storeOf).IfVaried(),
		output.Flexible("CONSUMER", func(v topView) string { return legible.Printable(v.Consumer) }),
		output.Text("STATE", topView.state),
		output.Text("RATE/S", func(v topView) string { return figure(v.PerSecond, "%.1f") }),
		output.Text("LAG", func(v topView) string { return figure(v.Lag, "%.0f") }),
		number("WAIT", func(v topView) (int64, bool) { return v.Waiting, v.MoreWaiting }),
		output.Text("OLDEST", oldest),
		number("PARKED", func(v topView) (int64, bool) { return v.Aside, v.MoreAside }),
		output.Flexible("WHY", func(v topView) string { return cmp.Or(legible.Printable(v.Error), lastError(v.LastError, now), "-") }),
	}
}

// state returns the state of a consumer for the table.
func (v topView) state() string {
	if v.State == "" && v.answered && !v.isRunning {
		return notInRun
	}
	return cmp.Or(v.State, "unknown")
}

// lastError returns a consumer's last error and its age as text.
func lastError(e *metrics.LastError, now time.Time) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf("%s ago, %s: %s", age(now, e.At), legible.Printable(e.Event), legible.Printable(e.Error))
}

// age formats the time between the parameters at and now. If the time is at least one hour, age rounds to
// hours.
func age(now, at time.Time) string {
	ago := max(now.Sub(at), 0).Round(time.Second)
	if ago >= time.Hour {
		ago = ago.Round(time.Hour)
	}
	return legible.Span(ago)
}

func figure(f *float64, format string) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf(format, *f)
}

func oldest(v topView) string {
	switch {
	case v.Unread:
		return "?"
	case v.Waiting == 0:
		return "-"
	}
	return time.Duration(v.Oldest * float64(time.Second)).Round(time.Second).String()
}
