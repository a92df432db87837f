package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/semel-go/semel/cmd/semel/internal/terminal"
)

// screen is a terminal whose keys are read one by one. What stood there comes back when it
// is closed.
type screen struct {
	out     io.Writer
	keys    chan string
	restore func()
	size    func(usual int) (columns, rows int)
}

// What a terminal obeys.
const (
	otherScreen = "\x1b[?1049h\x1b[?25l" // without a cursor
	firstScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	restOfLine  = "\x1b[K"
	restOfAll   = "\x1b[J"
)

// keyboard reports whether a person has keys there.
func keyboard(in io.Reader) bool {
	f, is := in.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}

func openScreen(s Streams) (*screen, error) {
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
		var reading sync.WaitGroup // nobody waits for it: a read of a terminal ends with the process
		reading.Go(func() { readKeys(in, sc.keys) })
	}
	_, err := io.WriteString(sc.out, otherScreen)
	return sc, err
}

// usualRows is the height of a terminal that does not say its own.
const usualRows = 24

func (s *screen) close() {
	_, _ = io.WriteString(s.out, firstScreen)
	s.restore()
}

// draw shows a frame: its first two lines and its last one always, of what is between what
// fits, from row top on.
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
